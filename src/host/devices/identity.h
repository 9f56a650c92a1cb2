/* The identity of a device: the same through the verbs and through sysfs. */
#ifndef VB_HOST_IDENTITY_H
#define VB_HOST_IDENTITY_H

#include <stdint.h>

/* A locally administered OUI, so that no vendor's special cases apply. */
#define VB_VENDOR_ID  0x025642u
#define VB_FIRMWARE   "verbena"
#define VB_HW_VERSION 1

/* The name of a device's character device: the same in every process of the host, and no kernel device's. */
#define VB_UVERBS_PREFIX "uverbs_" /* and the interface's name */

/* Bits of the port's capability mask. */
#define VB_PORT_CAPABILITIES 0x04010000u /* CM, IP based GIDs */

/* Of an interface without a speed: loopback, virtual Ethernet, TUN and most virtual machines' adapters carry 20 to
 * 120 Gb/s. Programs choose by it how they send: with 10 Gb/s UCX cuts messages of 64 KiB into pieces. */
#define VB_SPEED_OF_NONE_MBPS 100000

/* The closest lanes and rate of an Ethernet speed (0: none), coded as in PortInfo, as programs multiply them back. */
void vb_device_rate(uint64_t mbps, uint8_t *width, uint8_t *speed);

#endif
