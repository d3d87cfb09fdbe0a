use super::*;
use crate::time::Duration;
use crate::units::{Rate, Share};
use crate::wire::psn::Psn;

fn set(name: &str, value: &str) -> Result<NicAttributes, AttributeError> {
    let mut nic = NicAttributes::default();
    NIC_ATTRIBUTES.set(&mut nic, name, value)?;
    Ok(nic)
}

// spec: RTT-2, SEG-5, RTO-4, RTO-5, RTO-8
#[test]
fn values_are_taken_in_range_and_refused_outside() {
    assert_eq!(set("MaxPSNRange", "32640").unwrap().max_psn_range, 32_640);
    assert_eq!(set("LinearRetryCount", "0").unwrap().linear_retry_count, 0);
    let timeout = set("InitialAckTimeout", "\"200 us\"").unwrap().initial_ack_timeout;
    assert_eq!(timeout, Duration::from_us(200));
    let mode = set("RTTTimestampMode", "WireTimestamp").unwrap().rtt_timestamp_mode;
    assert_eq!(mode, RttTimestampMode::WireTimestamp);
    for (name, value) in [
        ("MaxPSNRange", "0"),
        ("MaxPSNRange", "32641"),
        ("LinearRetryCount", "8"),
        ("ExponentialRetryCount", "26"),
        ("InitialAckTimeout", "\"0 ns\""),
        ("InitialAckTimeout", "\"9 s\""),
        ("InitialAckTimeout", "150"),
        ("Icrc", "1"),
        ("DataRate", "\"0 Gbps\""),
        ("DscpControl", "64"),
        ("RTTTimestampMode", "\"Both\""),
    ] {
        let error = set(name, value).unwrap_err().to_string();
        assert!(error.contains(&format!("`{name} = {value}`: must be a ")), "{error}");
    }
}

// spec: PB-1, PB-4, PB-8, PB-10, PB-11, PB-12, PB-14, PCIE-1, REL-1, SCHED-1, SCHED-7
#[test]
fn pcie_and_buffers_have_their_attributes() {
    let mut nic = NicAttributes::default();
    for (name, value) in [
        ("PcieNicSide.LaneCount", "8"),
        ("PcieHostSide.LaneBps", "16 Gbps"),
        ("PcieHostSide.TXHeaderBufferSize", "5000"),
        ("ReadRequestSize", "4096"),
        ("EgressBufferManager.TotalBufferSize", "\"64 KiB\""),
        ("EgressBufferManager.PoolAllocationVector", "[0.5, 0.25, 0, 0]"),
        ("QueueSchedulingType", "WeightedRoundRobin"),
        ("WRRQueueWeights", "[1000, 1]"),
        ("IngressBufferManager.TotalBufferSize", "1 MB"),
        ("ReceiverCongestionLowThreshold", "0"),
        ("ReceiverCongestionHighThreshold", "1"),
        ("RestoreCWindEnable", "true"),
        ("PFCEnableVector", "[0, 1, 0, 0, 0, 0, 0, 0]"),
        ("PfcStaticXoffThreshold", "0.75"),
        ("QuantaValue", "1"),
        ("MaxQps", "1"),
        ("AllowedPeers", "[\"10.0.0.1\",\n\"10.0.0.9\"]"),
        ("QpIdleTimeout", "1 us"),
        ("QPGroupsEnabled", "false"),
    ] {
        NIC_ATTRIBUTES.set(&mut nic, name, value).unwrap();
    }
    assert_eq!(nic.pcie_nic.rate(), Rate::mbps(8 * 31_520));
    assert_eq!(nic.pcie_host.rate(), Rate::gbps(256));
    assert_eq!((nic.pcie_host.tx_header_bytes, nic.read_request_bytes), (5_000, 4_096));
    assert_eq!(
        [0, 1, 2, 9].map(|class| nic.egress_buffer.pool_bytes(class)),
        [32_768, 16_384, 0, 0]
    );
    assert_eq!(nic.queue_scheduling, QueueScheduling::WeightedRoundRobin);
    assert_eq!(nic.wrr_weights, [1_000, 1]);
    assert_eq!(nic.ingress_buffer.pool_bytes(0), 900_000);
    assert_eq!(nic.receiver_congestion_low, Share::from_ppm(0));
    assert_eq!(nic.receiver_congestion_high, Share::from_ppm(1_000_000));
    assert!(nic.restore_cwnd && !nic.qp_groups_enabled);
    assert_eq!(nic.pfc.enabled, [false, true]);
    assert_eq!((nic.pfc.xoff, nic.pfc.quanta), (Share::from_ppm(750_000), 1));
    assert_eq!((nic.max_qps, nic.allowed_peers.len()), (1, 2));
    assert_eq!(nic.qp_idle_timeout, Duration::from_us(1));
}

// spec: PB-1, PB-8, PB-10, PB-12, PB-14, REL-1
#[test]
fn lists_and_shares_are_refused_outside_their_range() {
    for (name, value) in [
        ("PcieNicSide.LaneCount", "17"),
        ("PcieNicSide.LaneCount", "0"),
        ("PcieNicSide.RXDataBufferSize", "0"),
        ("ReadRequestSize", "4097"),
        ("EgressBufferManager.PoolAllocationVector", "[]"),
        ("EgressBufferManager.PoolAllocationVector", "[0.9, 1.1]"),
        ("EgressBufferManager.PoolAllocationVector", "[0, 0, 0, 0, 0, 0, 0, 0, 0]"),
        ("EgressBufferManager.PoolAllocationVector", "0.9"),
        ("WRRQueueWeights", "[1]"),
        ("WRRQueueWeights", "[1, 2, 3]"),
        ("WRRQueueWeights", "[0, 5]"),
        ("WRRQueueWeights", "[1, 1001]"),
        ("PFCEnableVector", "[]"),
        ("PFCEnableVector", "[0, 2]"),
        ("PFCEnableVector", "[0, 0, 1]"),
        ("PFCEnableVector", "[0, 0, 0, 0, 0, 0, 0, 0, 0]"),
        ("PfcXonResumeThreshold", "-0.1"),
        ("ReceiverCongestionLowThreshold", "0.12345678"),
        ("ReceiverCongestionHighThreshold", "2"),
        ("QuantaValue", "65536"),
        ("MaxQps", "0"),
        ("AllowedPeers", "[\"10.0.0\"]"),
        ("QpIdleTimeout", "1 ns"),
    ] {
        assert!(set(name, value).is_err(), "{name} = {value}");
    }
    let error = set("WRRQueueWeights", "[0,\n  5]").unwrap_err().to_string();
    assert_eq!(
        error,
        "`WRRQueueWeights = [0, 5]`: must be a list, each entry a whole number (2 entries, 1 to 1000); correct it, or remove it to keep [1, 5]"
    );
}

// case A01: a starting PSN of more than 24 bits is refused, never masked.
#[test]
fn a_first_psn_beyond_24_bits_is_refused() {
    assert_eq!(set("InitialPsn", "0xFFFFF0").unwrap().initial_psn, Psn::new(0xff_fff0));
    let error = set("InitialPsn", "0x1000005").unwrap_err().to_string();
    assert_eq!(
        error,
        "`InitialPsn = 0x1000005`: must be a whole number (0 to 16777215, or \"random\"); correct it, or remove it to keep 0"
    );
}

// spec: W-7
#[test]
fn a_word_may_stand_for_no_value() {
    assert_eq!(set("InitialPsn", "random").unwrap().initial_psn, None);
    assert_eq!(set("InitialPsn", "\"random\"").unwrap().initial_psn, None);
    assert_eq!(set("QpTombstoneTime", "auto").unwrap().qp_tombstone_time, None);
    assert!(set("InitialPsn", "auto").is_err());
}

#[test]
fn an_unknown_name_brings_the_nearest_known_ones() {
    for (name, near) in [
        ("maxpsnrange", " did you mean `MaxPSNRange`?"),
        ("InitalAckTimout", " did you mean `InitialAckTimeout`?"),
        ("DscpTrimed", " did you mean `DscpTrimmed`?"),
        ("PcieNicside.LaneCout", " did you mean `PcieNicSide.LaneCount`?"),
        ("LaneBps", " did you mean `PcieNicSide.LaneBps` or `PcieHostSide.LaneBps`?"),
        ("Colour", ""),
        ("", ""),
    ] {
        let want =
            format!("`{name}` is not an attribute of a NIC;{near} `mrc attributes nic` lists them");
        assert_eq!(set(name, "5").unwrap_err().to_string(), want);
    }
    let switch = SWITCH_ATTRIBUTES.set(&mut SwitchAttributes::default(), "PlaneBdp", "5 KB");
    let error = switch.unwrap_err().to_string();
    assert!(
        error.ends_with("did you mean `PlaneBDP`? `mrc attributes switch` lists them"),
        "{error}"
    );
}

#[test]
fn every_name_is_there_once() {
    let mut names: Vec<_> = NIC_ATTRIBUTES.attributes().map(|attribute| attribute.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

#[test]
fn every_default_is_read_as_it_is_shown() {
    let nic = NicAttributes::default();
    for attribute in NIC_ATTRIBUTES.attributes() {
        let shown = attribute.show(&nic);
        assert_eq!(set(attribute.name, &shown).as_ref(), Ok(&nic), "{} = {shown}", attribute.name);
    }
}
