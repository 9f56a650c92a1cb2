/* See unloaded.h. */
#include "net/unloaded.h"

/* Unless the overhead is given: a RETH in a message's first packet, and an AETH in an acknowledgement. */
enum { FIRST_MORE = 16, ACK_MORE = 4, PADDED = 3 };

/* The part of a packet that a cut-through switch needs before it forwards it. */
enum { HEADER_BYTES = 64 };

bool unloaded_way(
	const struct network *network, const struct routes *routes, uint32_t src, uint32_t dst, struct way *way)
{
	uint32_t link = network->endpoints[src].link;
	for (way->count = 0; way->count < UNLOADED_LINKS;) {
		way->links[way->count++] = link;
		const network_node to = network->links[link].to;
		if (!network_is_switch(to))
			return to == dst;
		const struct route_choice choice = routes_towards(routes, network_index(to), dst);
		if (!choice.count)
			return false;
		link = choice.links[0];
	}
	return false;
}

/* ---- Packets ----------------------------------------------------------------------------------------------------- */

/* How a message's packets are on the wire: all but the last have as many bytes, and the first has more. */
struct cut {
	uint64_t packets, full, last, first_more;
};

static struct cut cut_of(const struct framing *framing, uint64_t bytes)
{
	const bool is_given = framing->data_overhead;
	const uint64_t overhead = is_given ? framing->data_overhead : FRAMING_ROCE_OVERHEAD,
		       pad = is_given ? 0 : PADDED;
	const uint64_t packets = framing_packets(framing, bytes), rest = bytes - (packets - 1) * framing->mtu;
	return (struct cut){ .packets = packets,
		.full = ((framing->mtu + pad) & ~pad) + overhead,
		.last = ((rest + pad) & ~pad) + overhead,
		.first_more = is_given ? 0 : FIRST_MORE };
}

uint64_t framing_packets(const struct framing *framing, uint64_t bytes)
{
	return bytes / framing->mtu + (bytes % framing->mtu != 0);
}

uint64_t framing_wire_bytes(const struct framing *framing, uint64_t bytes)
{
	const struct cut cut = cut_of(framing, bytes);
	return cut.first_more + (cut.packets - 1) * cut.full + cut.last;
}

uint64_t framing_ack_bytes(const struct framing *framing)
{
	return framing->ack_overhead ? framing->ack_overhead : FRAMING_ROCE_OVERHEAD + ACK_MORE;
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

static vb_time bytes_time(const struct network *network, uint32_t link, uint64_t bytes)
{
	const vb_time time = (vb_time)((unsigned __int128)bytes * 8 * (uint64_t)VB_S / network_rate(network, link));
	return network->is_whole_ns ? time - time % VB_NS : time;
}

static const struct switch_profile *behind(const struct network *network, uint32_t link)
{
	return network_profile(network, network->links[link].to);
}

/* A train of packets along a path, without delays that shift all alike: when the last packet's bits were on each link.
 */
struct train {
	const struct network *network;
	const struct way *way;
	vb_time begins[UNLOADED_LINKS], ends[UNLOADED_LINKS];
};

static void begin(struct train *train, const struct network *network, const struct way *way)
{
	train->network = network;
	train->way = way;
	for (uint32_t i = 0; i < way->count; i++)
		train->begins[i] = train->ends[i] = 0;
}

static bool is_cut_through(const struct train *train, unsigned before)
{
	return behind(train->network, train->way->links[before])->is_cut_through;
}

/* Sends one more packet. Returns whether from now on each packet of its size arrives just as much later as this one
 * did: the links then idle equally long between packets. */
static bool send(struct train *train, uint64_t bytes)
{
	bool is_steady = true;
	vb_time slowest = 0;

	for (unsigned i = 0; i < train->way->count; i++) {
		vb_time takes = bytes_time(train->network, train->way->links[i], bytes), there = 0,
			was = train->ends[i];
		bool is_cut = i && is_cut_through(train, i - 1);
		if (i)
			there = is_cut ? train->begins[i - 1] + bytes_time(train->network, train->way->links[i - 1],
									bytes < HEADER_BYTES ? bytes : HEADER_BYTES)
				       : train->ends[i - 1];
		vb_time ends = (there > was ? there : was) + takes;
		if (is_cut && ends < train->ends[i - 1]) /* no bit leaves before it has arrived */
			ends = train->ends[i - 1];
		train->ends[i] = ends;
		train->begins[i] = ends - takes;
		slowest = takes > slowest ? takes : slowest;
		is_steady = is_steady && ends - was == slowest;
	}
	return is_steady;
}

/* So many more packets of a size, once they arrive evenly. */
static void skip(struct train *train, uint64_t count, uint64_t bytes)
{
	vb_time slowest = 0;

	for (unsigned i = 0; i < train->way->count; i++) {
		vb_time takes = bytes_time(train->network, train->way->links[i], bytes);
		slowest = takes > slowest ? takes : slowest;
		train->begins[i] += (vb_time)count * slowest;
		train->ends[i] += (vb_time)count * slowest;
	}
}

/* The time that both ends add to a packet. */
static vb_time ends_time(const struct network *network, const struct way *way)
{
	const network_node src = network->links[way->links[0]].from,
			   dst = network->links[way->links[way->count - 1]].to;
	const struct nic_profile *from = &network->nics[network->endpoints[src].nic];
	const struct nic_profile *to = &network->nics[network->endpoints[dst].nic];
	return from->send_latency + from->pcie_latency + to->receive_latency + to->pcie_latency;
}

/* Delays that shift all packets alike. */
static vb_time delays_of(const struct network *network, const struct way *way)
{
	vb_time delays = ends_time(network, way);
	for (uint32_t i = 0; i < way->count; i++)
		delays += network->links[way->links[i]].delay + (i ? behind(network, way->links[i - 1])->latency : 0);
	return delays;
}

vb_time unloaded_message_time(
	const struct network *network, const struct way *way, const struct framing *framing, uint64_t bytes)
{
	struct train train;
	const struct cut cut = cut_of(framing, bytes);
	begin(&train, network, way);
	if (cut.packets > 1)
		send(&train, cut.full + cut.first_more);
	for (uint64_t left = cut.packets > 2 ? cut.packets - 2 : 0; left > 0; left--)
		if (send(&train, cut.full)) {
			skip(&train, left - 1, cut.full);
			break;
		}
	send(&train, cut.last + (cut.packets == 1 ? cut.first_more : 0));
	return train.ends[way->count - 1] + delays_of(network, way);
}

vb_time unloaded_ack_time(const struct network *network, const struct way *back, const struct framing *framing)
{
	struct train train;
	begin(&train, network, back);
	send(&train, framing_ack_bytes(framing));
	return train.ends[back->count - 1] + delays_of(network, back);
}
