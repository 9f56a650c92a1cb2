/* XRC domains, and receiving QPs that are shared by their number.
 * A domain belongs to an opened device. If it is opened with a descriptor, every open of the same inode is another
 * handle of the one domain. It is not shared with other processes, whose devices are their own.
 * Holds: a domain lives as long as a handle is open. A handle cannot close while there are SRQs or QPs made with it. A
 * receiving QP lives until all its handles are destroyed; the engine knows it by the handle that made it.
 * Not here: SRQs of a domain (srq.c), other QPs (qp.c). */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "verbs/objects.h"

/* ---- Domains ----------------------------------------------------------------------------------------------------- */

struct xrc_domain {
	struct vb_list link; /* in the context's domains; under its mutex, like handles */
	unsigned handles;
	struct vb_xrcd *xrcd;
	int fd;          /* keeps the inode, so that no other file gets its number; -1: private */
	unsigned losses; /* vb_host_losses() before fd was made */
	dev_t dev;
	ino_t ino;
};

static struct xrc_domain *domain_of_inode(struct context_object *context, const struct stat *inode)
{
	vb_list_for_each (node, &context->domains) {
		struct xrc_domain *domain = vb_container_of(node, struct xrc_domain, link);
		if (domain->fd >= 0 && domain->dev == inode->st_dev && domain->ino == inode->st_ino)
			return domain;
	}
	return NULL;
}

static int domain_create(struct context_object *context, int fd, const struct stat *inode, struct xrc_domain **created)
{
	struct xrc_domain *domain = calloc(1, sizeof(*domain));
	if (!domain)
		return ENOMEM;
	domain->losses = vb_host_losses();
	domain->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0 && domain->fd < 0) {
		int err = errno;
		free(domain);
		return err;
	}
	int err = -vb_xrcd_create(vb_device_nic(context->host), &domain->xrcd);
	if (err) {
		if (domain->fd >= 0)
			close(domain->fd);
		free(domain);
		return err;
	}
	domain->dev = inode->st_dev;
	domain->ino = inode->st_ino;
	vb_list_add_tail(&context->domains, &domain->link);
	*created = domain;
	return 0;
}

/* As in the kernel, EAGAIN: there is no domain, and none is to be made; EINVAL: there is one, but must not be. */
static int domain_get(struct context_object *context, const struct ibv_xrcd_init_attr *attr, struct xrc_domain **domain)
{
	struct stat inode = { 0 };
	if (attr->fd != -1 && fstat(attr->fd, &inode))
		return errno;
	*domain = attr->fd == -1 ? NULL : domain_of_inode(context, &inode);
	if (*domain && (attr->oflags & O_CREAT) && (attr->oflags & O_EXCL))
		return EINVAL;
	if (!*domain && attr->fd != -1 && !(attr->oflags & O_CREAT))
		return EAGAIN;
	int err = *domain ? 0 : domain_create(context, attr->fd, &inode, domain);
	if (!err)
		(*domain)->handles++;
	return err;
}

static int domain_put(struct xrc_domain *domain)
{
	if (domain->handles == 1) {
		int err = -vb_xrcd_destroy(domain->xrcd);
		if (err)
			return err;
		vb_list_remove(&domain->link);
		vb_close_unless_lost(domain->fd, domain->losses);
		free(domain);
		return 0;
	}
	domain->handles--;
	return 0;
}

struct ibv_xrcd *vb_xrcd_ops_open(struct ibv_context *ibv, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct context_object *context = vb_context_of(ibv);
	if (vb_refuses_forked(ibv))
		return vb_fail(VB_FORKED_ERRNO);
	if (attr->comp_mask & ~needed)
		return vb_fail(EOPNOTSUPP);
	if (attr->comp_mask != needed)
		return vb_fail(EINVAL);
	struct xrcd_object *xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return vb_fail(ENOMEM);
	xrcd->ibv.context = ibv;
	pthread_mutex_lock(&ibv->mutex);
	int err = domain_get(context, attr, &xrcd->domain);
	pthread_mutex_unlock(&ibv->mutex);
	if (err) {
		free(xrcd);
		return vb_fail(err);
	}
	xrcd->xrcd = xrcd->domain->xrcd;
	vb_object_add(ibv, OBJECT_XRCD, &xrcd->link);
	return &xrcd->ibv;
}

int vb_xrcd_ops_close(struct ibv_xrcd *ibv)
{
	struct xrcd_object *xrcd = (struct xrcd_object *)ibv;
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (atomic_load(&xrcd->users))
		return EBUSY;
	pthread_mutex_lock(&ibv->context->mutex);
	int err = domain_put(xrcd->domain);
	pthread_mutex_unlock(&ibv->context->mutex);
	if (err)
		return err;
	vb_object_remove(ibv->context, &xrcd->link);
	free(xrcd);
	return 0;
}

/* ---- Receiving QPs ----------------------------------------------------------------------------------------------- */

/* The handle that created the QP, found through any handle that is open on it. The caller holds the host lane's mutex,
 * so no handle is closed meanwhile. */
static struct qp_object *find_qp(struct context_object *context, const struct ibv_qp_open_attr *attr)
{
	const struct xrc_domain *domain = ((struct xrcd_object *)attr->xrcd)->domain;
	struct qp_object *found = NULL;
	pthread_mutex_lock(&context->objects_lock);
	vb_list_for_each (node, &context->objects[OBJECT_QP]) {
		struct qp_object *qp = vb_container_of(node, struct qp_object, link);
		if (qp->xrcd && qp->ibv.qp_num == attr->qp_num && qp->xrcd->domain == domain)
			found = qp->owner;
	}
	pthread_mutex_unlock(&context->objects_lock);
	return found;
}

static struct qp_object *make_handle(struct ibv_context *context, const struct ibv_qp_open_attr *attr)
{
	struct qp_object *qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->ibv.context = context;
	qp->ibv.qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL;
	qp->ibv.qp_type = IBV_QPT_XRC_RECV;
	qp->ibv.qp_num = attr->qp_num;
	qp->ibv.handle = attr->qp_num;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	qp->host = vb_host_of(context);
	qp->host_lane = vb_host_lane_of(context);
	vb_qp_own(qp, (struct xrcd_object *)attr->xrcd);
	return qp;
}

struct ibv_qp *vb_qp_ops_open(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	if (vb_refuses_forked(context))
		return vb_fail(VB_FORKED_ERRNO);
	if (attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT))
		return vb_fail(EOPNOTSUPP);
	if ((attr->comp_mask & needed) != needed || attr->qp_type != IBV_QPT_XRC_RECV || !attr->xrcd ||
		attr->xrcd->context != context)
		return vb_fail(EINVAL);
	int err = -vb_host_lane_lock(vb_host_lane_of(context));
	if (err)
		return vb_fail(err);
	struct qp_object *owner = find_qp(vb_context_of(context), attr);
	struct qp_object *qp = owner ? make_handle(context, attr) : NULL;
	if (qp) {
		qp->owner = owner;
		qp->qp = owner->qp;
		qp->ibv.state = (enum ibv_qp_state)vb_qp_state(qp->qp);
		vb_list_add_tail(&owner->opened, &qp->opened_link);
		vb_object_add(context, OBJECT_QP, &qp->link);
	}
	vb_host_lane_unlock(vb_host_lane_of(context));
	return qp ? &qp->ibv : vb_fail(owner ? ENOMEM : EINVAL);
}

void vb_qp_own(struct qp_object *qp, struct xrcd_object *xrcd)
{
	qp->owner = qp;
	vb_list_init(&qp->opened);
	vb_list_init(&qp->opened_link);
	qp->xrcd = xrcd;
	if (xrcd)
		vb_users_add(&xrcd->users, 1);
}

/* The program gives the handle up. The engine's QP stays while others have it open. */
bool vb_qp_disown(struct qp_object *qp, struct qp_object **owner)
{
	vb_list_remove(&qp->opened_link);
	qp->is_closed = true;
	*owner = qp->owner;
	if (qp->xrcd)
		vb_users_add(&qp->xrcd->users, -1);
	return qp->owner->is_closed && vb_list_empty(&qp->owner->opened);
}
