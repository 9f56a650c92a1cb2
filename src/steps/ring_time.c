/* See ring_time.h. */
#include "steps/ring_time.h"

/* Of a step in a host. With shares of all rings at once it would be `together`; but each ring is at the port for a part
 * of the step alone, x / (alpha + x): so x = s + (rings - 1) s x / (alpha + x), where s is the time of one share. By
 * Newton's method, from above. */
static double time_at_port(const struct step_way *way, double bytes)
{
	const double alpha = way->near.alpha, together = step_transfer(&way->near, bytes);
	const double s = way->near_rings > 1 ? together / way->near_rings : together;
	double x = together;
	for (unsigned i = 0; i < 16 && x > 0; i++)
		x = (x * x + s * alpha) / (2 * x + alpha - together);
	return x;
}

/* A share goes once or twice round. Either its way is what takes longest, the sum along all links, or a link of either
 * kind, which sends share after share. */
double ring_time(const struct step_way *way, const struct collective_law *law)
{
	const double near = (double)(uint64_t)(law->alphas * way->near_part), far = law->alphas - near;
	const double along = near * way->near.alpha + far * way->link.alpha +
			     near * time_at_port(way, law->bytes / law->alphas) +
			     step_transfer(&way->link, law->bytes * far / law->alphas);
	const double at_link = way->link.alpha + step_transfer(&way->link, law->bytes);
	const double at_near = near > 0 ? way->near.alpha + step_transfer(&way->near, law->bytes) : 0;
	const double longest = along > at_link ? along : at_link;
	return longest > at_near ? longest : at_near;
}
