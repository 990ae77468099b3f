//! Feature bits of VirtIO that Ferric knows (spec 5.1.3, 6), each with those that it takes for granted (spec 5.1.3.1). Bits from 64 on (version 1.4) are none of them.

/// One feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name without prefix.
    pub name: &'static str,
    /// Its bit.
    pub bit: u8,
    /// Of these bits one has to be set, too; none: it stands alone.
    pub needs: u64,
    /// What it says.
    pub doc: &'static str,
}

macro_rules! features {
    ($( $name:ident = $bit:literal, [$($need:ident)*], $doc:literal; )*) => {
        $( #[doc = concat!("Bit ", stringify!($bit), ". ", $doc)] pub const $name: u64 = 1 << $bit; )*
        /// Every feature, by its bit.
        pub const ALL: &[Feature] = &[ $( Feature { name: stringify!($name), bit: $bit, needs: 0 $(| $need)*, doc: $doc } ),* ];
    };
}

features! {
    CSUM = 0, [], "The device fills in checksums of what it sends.";
    GUEST_CSUM = 1, [], "The driver takes the device's word for checksums of what it receives.";
    MTU = 3, [], "`mtu` of the device configuration counts.";
    MAC = 5, [], "`mac` of the device configuration counts.";
    HOST_TSO4 = 11, [CSUM], "The device cuts TCP over IPv4 into segments.";
    HOST_TSO6 = 12, [CSUM], "The device cuts TCP over IPv6 into segments.";
    HOST_ECN = 13, [HOST_TSO4 HOST_TSO6], "It does so for segments with CWR set.";
    MRG_RXBUF = 15, [], "A received frame may take several buffers.";
    STATUS = 16, [], "`status` of the device configuration counts.";
    CTRL_VQ = 17, [], "There is a control queue.";
    CTRL_RX = 18, [CTRL_VQ], "It takes the receive modes PROMISC and ALLMULTI.";
    CTRL_VLAN = 19, [CTRL_VQ], "It takes the VLAN filter.";
    CTRL_RX_EXTRA = 20, [CTRL_VQ], "It takes the other receive modes.";
    GUEST_ANNOUNCE = 21, [CTRL_VQ], "The device may ask the driver to announce itself.";
    MQ = 22, [CTRL_VQ], "There are several pairs of queues.";
    CTRL_MAC_ADDR = 23, [CTRL_VQ], "The control queue takes the MAC address.";
    INDIRECT_DESC = 28, [], "A descriptor may lead to a table of descriptors.";
    EVENT_IDX = 29, [], "Both sides say at which index they want to be told.";
    VERSION_1 = 32, [], "The device follows the specification, and no draft of it.";
    ACCESS_PLATFORM = 33, [], "Addresses are those of the device's bus, behind an IOMMU if there is one.";
    RING_PACKED = 34, [], "Rings are packed.";
    IN_ORDER = 35, [], "Buffers are used in the order in which they are made available.";
    ORDER_PLATFORM = 36, [], "The driver's memory barriers are those for a real device.";
    SR_IOV = 37, [], "The device has virtual functions.";
    NOTIFICATION_DATA = 38, [], "Notifications say how far the driver has come.";
    NOTIF_CONFIG_DATA = 39, [], "Notifications carry `queue_notif_config_data`.";
    RING_RESET = 40, [], "Queues can be reset one by one.";
    ADMIN_VQ = 41, [], "There is an administration queue.";
    DEVICE_STATS = 50, [CTRL_VQ], "The control queue reads statistics.";
    VQ_NOTF_COAL = 52, [CTRL_VQ], "Notifications of each queue can be coalesced.";
    NOTF_COAL = 53, [CTRL_VQ], "Notifications can be coalesced.";
    HOST_USO = 56, [CSUM], "The device cuts UDP into datagrams.";
    HASH_REPORT = 57, [], "The header carries the hash of a received frame.";
    GUEST_HDRLEN = 59, [], "`hdr_len` of a sent frame is exact.";
    RSS = 60, [CTRL_VQ], "Receive side scaling.";
    SPEED_DUPLEX = 63, [], "`speed` and `duplex` of the device configuration count.";
}

/// Whether each feature of `taken` has what it takes for granted.
pub fn are_complete(taken: u64) -> bool {
    ALL.iter().all(|f| taken >> f.bit & 1 == 0 || f.needs == 0 || taken & f.needs != 0)
}
