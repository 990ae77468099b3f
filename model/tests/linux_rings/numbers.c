/* Prints the numbers of VIRTIO as Linux' headers have them, one in a line behind its name in `ferric_abi::virtio`: bits of features, of flags and of the status, offsets of fields and sizes in
 * bytes. */
#define ETH_ALEN 6
#define __KERNEL_DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <uapi/linux/virtio_net.h>
#include <uapi/linux/virtio_pci.h>

struct hooks hooks;

#define NUMBER(name, value) printf("%s %llu\n", name, (unsigned long long)(value))
#define NET(name) NUMBER("feature " #name, VIRTIO_NET_F_##name)
#define TRANSPORT(name) NUMBER("feature " #name, VIRTIO_F_##name)
#define FIELD(record, name, type, member) NUMBER("field " #record " " #name, offsetof(struct type, member))
#define SIZE(record, type) NUMBER("size " #record, sizeof(struct type))
#define COMMON(name, member) FIELD(CommonConfig, name, virtio_pci_modern_common_cfg, member)

int main(void)
{
	NET(CSUM); NET(GUEST_CSUM); NET(MTU); NET(MAC); NET(HOST_TSO4); NET(HOST_TSO6); NET(HOST_ECN); NET(MRG_RXBUF); NET(STATUS); NET(CTRL_VQ); NET(CTRL_RX); NET(CTRL_VLAN);
	NET(CTRL_RX_EXTRA); NET(GUEST_ANNOUNCE); NET(MQ); NET(CTRL_MAC_ADDR); NET(DEVICE_STATS); NET(VQ_NOTF_COAL); NET(NOTF_COAL); NET(HOST_USO); NET(HASH_REPORT); NET(GUEST_HDRLEN);
	NET(RSS); NET(SPEED_DUPLEX);
	NUMBER("feature INDIRECT_DESC", VIRTIO_RING_F_INDIRECT_DESC);
	NUMBER("feature EVENT_IDX", VIRTIO_RING_F_EVENT_IDX);
	TRANSPORT(VERSION_1); TRANSPORT(ACCESS_PLATFORM); TRANSPORT(RING_PACKED); TRANSPORT(IN_ORDER); TRANSPORT(ORDER_PLATFORM); TRANSPORT(SR_IOV); TRANSPORT(NOTIFICATION_DATA);
	TRANSPORT(NOTIF_CONFIG_DATA); TRANSPORT(RING_RESET); TRANSPORT(ADMIN_VQ);

	COMMON(device_feature_select, cfg.device_feature_select);
	COMMON(device_feature, cfg.device_feature);
	COMMON(driver_feature_select, cfg.guest_feature_select);
	COMMON(driver_feature, cfg.guest_feature);
	COMMON(config_msix_vector, cfg.msix_config);
	COMMON(num_queues, cfg.num_queues);
	COMMON(device_status, cfg.device_status);
	COMMON(config_generation, cfg.config_generation);
	COMMON(queue_select, cfg.queue_select);
	COMMON(queue_size, cfg.queue_size);
	COMMON(queue_msix_vector, cfg.queue_msix_vector);
	COMMON(queue_enable, cfg.queue_enable);
	COMMON(queue_notify_off, cfg.queue_notify_off);
	COMMON(queue_desc, cfg.queue_desc_lo);
	COMMON(queue_driver, cfg.queue_avail_lo);
	COMMON(queue_device, cfg.queue_used_lo);
	COMMON(queue_notif_config_data, queue_notify_data);
	COMMON(queue_reset, queue_reset);
	COMMON(admin_queue_index, admin_queue_index);
	COMMON(admin_queue_num, admin_queue_num);
	SIZE(CommonConfig, virtio_pci_modern_common_cfg);

	FIELD(NetConfig, mac, virtio_net_config, mac);
	FIELD(NetConfig, status, virtio_net_config, status);
	FIELD(NetConfig, max_pairs, virtio_net_config, max_virtqueue_pairs);
	FIELD(NetConfig, mtu, virtio_net_config, mtu);
	FIELD(NetConfig, speed, virtio_net_config, speed);
	FIELD(NetConfig, duplex, virtio_net_config, duplex);
	FIELD(NetConfig, rss_max_key_size, virtio_net_config, rss_max_key_size);
	FIELD(NetConfig, rss_max_table, virtio_net_config, rss_max_indirection_table_length);
	FIELD(NetConfig, hash_types, virtio_net_config, supported_hash_types);

	FIELD(NetHeader, needs_csum, virtio_net_hdr_v1, flags);
	FIELD(NetHeader, gso, virtio_net_hdr_v1, gso_type);
	FIELD(NetHeader, hdr_len, virtio_net_hdr_v1, hdr_len);
	FIELD(NetHeader, gso_size, virtio_net_hdr_v1, gso_size);
	FIELD(NetHeader, csum_start, virtio_net_hdr_v1, csum_start);
	FIELD(NetHeader, csum_offset, virtio_net_hdr_v1, csum_offset);
	FIELD(NetHeader, num_buffers, virtio_net_hdr_v1, num_buffers);
	SIZE(NetHeader, virtio_net_hdr_v1);
	SIZE(ControlHead, virtio_net_ctrl_hdr);
	FIELD(RssHead, hash_types, virtio_net_rss_config_hdr, hash_types);
	FIELD(RssHead, mask, virtio_net_rss_config_hdr, indirection_table_mask);
	FIELD(RssHead, unclassified, virtio_net_rss_config_hdr, unclassified_queue);
	NUMBER("size RssHead", offsetof(struct virtio_net_rss_config_hdr, indirection_table));
	FIELD(RssTail, max_tx_vq, virtio_net_rss_config_trailer, max_tx_vq);
	FIELD(RssTail, key_length, virtio_net_rss_config_trailer, hash_key_length);
	NUMBER("size RssTail", offsetof(struct virtio_net_rss_config_trailer, hash_key_data));

	FIELD(SplitDesc, addr, vring_desc, addr);
	FIELD(SplitDesc, length, vring_desc, len);
	FIELD(SplitDesc, has_next, vring_desc, flags);
	FIELD(SplitDesc, next, vring_desc, next);
	SIZE(SplitDesc, vring_desc);
	FIELD(UsedElem, id, vring_used_elem, id);
	FIELD(UsedElem, length, vring_used_elem, len);
	SIZE(UsedElem, vring_used_elem);
	FIELD(PackedDesc, length, vring_packed_desc, len);
	FIELD(PackedDesc, id, vring_packed_desc, id);
	FIELD(PackedDesc, has_next, vring_packed_desc, flags);
	SIZE(PackedDesc, vring_packed_desc);
	FIELD(PackedEvent, flags, vring_packed_desc_event, flags);
	SIZE(PackedEvent, vring_packed_desc_event);

	NUMBER("bit SplitDesc has_next", VRING_DESC_F_NEXT);
	NUMBER("bit SplitDesc write", VRING_DESC_F_WRITE);
	NUMBER("bit SplitDesc indirect", VRING_DESC_F_INDIRECT);
	NUMBER("bit PackedDesc has_next", VRING_DESC_F_NEXT);
	NUMBER("bit PackedDesc write", VRING_DESC_F_WRITE);
	NUMBER("bit PackedDesc indirect", VRING_DESC_F_INDIRECT);
	NUMBER("bit PackedDesc avail", 1 << VRING_PACKED_DESC_F_AVAIL);
	NUMBER("bit PackedDesc used", 1 << VRING_PACKED_DESC_F_USED);
	NUMBER("bit PackedEvent wrap", 1 << VRING_PACKED_EVENT_F_WRAP_CTR);
	NUMBER("bit AvailHead no_interrupt", VRING_AVAIL_F_NO_INTERRUPT);
	NUMBER("bit UsedHead no_notify", VRING_USED_F_NO_NOTIFY);
	NUMBER("bit NetHeader needs_csum", VIRTIO_NET_HDR_F_NEEDS_CSUM);
	NUMBER("bit NetHeader data_valid", VIRTIO_NET_HDR_F_DATA_VALID);
	NUMBER("bit NetHeader ecn", VIRTIO_NET_HDR_GSO_ECN << 8);

	NUMBER("status ACKNOWLEDGE", VIRTIO_CONFIG_S_ACKNOWLEDGE);
	NUMBER("status DRIVER", VIRTIO_CONFIG_S_DRIVER);
	NUMBER("status DRIVER_OK", VIRTIO_CONFIG_S_DRIVER_OK);
	NUMBER("status FEATURES_OK", VIRTIO_CONFIG_S_FEATURES_OK);
	NUMBER("status NEEDS_RESET", VIRTIO_CONFIG_S_NEEDS_RESET);
	NUMBER("status FAILED", VIRTIO_CONFIG_S_FAILED);
	NUMBER("event ENABLE", VRING_PACKED_EVENT_FLAG_ENABLE);
	NUMBER("event DISABLE", VRING_PACKED_EVENT_FLAG_DISABLE);
	NUMBER("event DESC", VRING_PACKED_EVENT_FLAG_DESC);
	NUMBER("gso TCPV4", VIRTIO_NET_HDR_GSO_TCPV4);
	NUMBER("gso TCPV6", VIRTIO_NET_HDR_GSO_TCPV6);
	NUMBER("gso UDP_L4", VIRTIO_NET_HDR_GSO_UDP_L4);
	NUMBER("control RX", VIRTIO_NET_CTRL_RX);
	NUMBER("control RX_ALLMULTI", VIRTIO_NET_CTRL_RX_ALLMULTI);
	NUMBER("control RX_NOBCAST", VIRTIO_NET_CTRL_RX_NOBCAST);
	NUMBER("control MAC", VIRTIO_NET_CTRL_MAC);
	NUMBER("control MAC_ADDR_SET", VIRTIO_NET_CTRL_MAC_ADDR_SET);
	NUMBER("control MQ", VIRTIO_NET_CTRL_MQ);
	NUMBER("control MQ_PAIRS_SET", VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET);
	NUMBER("control MQ_RSS_CONFIG", VIRTIO_NET_CTRL_MQ_RSS_CONFIG);
	NUMBER("hash IPV4", VIRTIO_NET_RSS_HASH_TYPE_IPv4);
	NUMBER("hash TCPV4", VIRTIO_NET_RSS_HASH_TYPE_TCPv4);
	NUMBER("hash UDPV4", VIRTIO_NET_RSS_HASH_TYPE_UDPv4);
	NUMBER("hash IPV6", VIRTIO_NET_RSS_HASH_TYPE_IPv6);
	NUMBER("hash TCPV6", VIRTIO_NET_RSS_HASH_TYPE_TCPv6);
	NUMBER("hash UDPV6", VIRTIO_NET_RSS_HASH_TYPE_UDPv6);
	NUMBER("control NOTF_COAL", VIRTIO_NET_CTRL_NOTF_COAL);
	NUMBER("control NOTF_COAL_TX_SET", VIRTIO_NET_CTRL_NOTF_COAL_TX_SET);
	NUMBER("control NOTF_COAL_RX_SET", VIRTIO_NET_CTRL_NOTF_COAL_RX_SET);
	FIELD(NotfCoal, max_packets, virtio_net_ctrl_coal, max_packets);
	FIELD(NotfCoal, max_usecs, virtio_net_ctrl_coal, max_usecs);
	SIZE(NotfCoal, virtio_net_ctrl_coal);
	NUMBER("control ERR", VIRTIO_NET_ERR);
	NUMBER("isr CONFIG", VIRTIO_PCI_ISR_CONFIG);
	NUMBER("vector NONE", VIRTIO_MSI_NO_VECTOR);
	return 0;
}
