//! What a switch's attributes may not be together, though each is allowed by
//! itself.

use super::switch::{LoadBalancing, SWITCH_CLASSES};
use crate::units::show_bytes;

use super::{Problem, SWITCH_ATTRIBUTES, SwitchAttributes};

/// The largest frame that a pool must have room for at every port: a full
/// packet's IP datagram at the largest MSS.
const LARGEST_DATAGRAM: u64 = 4_160;

impl SwitchAttributes {
    /// Everything for which no switch with `ports` connected ports starts with
    /// these attributes; empty when one does.
    // spec: SW-5, SW-14, SW-18, DSCP-6
    pub fn problems(&self, ports: usize) -> Vec<Problem> {
        let mut check = Check { switch: self, found: Vec::new() };
        check.trimming();
        check.paths();
        check.shares();
        check.pools(ports);
        check.thresholds();
        check.found
    }
}

struct Check<'a> {
    switch: &'a SwitchAttributes,
    found: Vec<Problem>,
}

impl Check<'_> {
    fn refuse(&mut self, attribute: &'static str, wanted: String, remedy: &str) {
        let shown = SWITCH_ATTRIBUTES.find(attribute).map(|a| a.show(self.switch));
        let value = shown.unwrap_or_default();
        self.found.push(Problem { attribute, value, wanted, remedy: remedy.to_owned() });
    }

    // spec: SW-18, DSCP-6
    fn trimming(&mut self) {
        if !self.switch.trimming_enabled {
            return;
        }
        if !self.switch.uet_policy_enabled {
            self.refuse(
                "TrimmingEnabled",
                "needs the UET policy, and UETPolicyEnabled is false".to_owned(),
                "set UETPolicyEnabled to true, or this to false",
            );
        }
        if self.switch.buffer.lossless.contains(&true) {
            self.refuse(
                "EnablePFC",
                "no class may be lossless where TrimmingEnabled is true".to_owned(),
                "set every entry to 0, or TrimmingEnabled to false",
            );
        }
    }

    /// Flowlets need a hash that tells flows apart.
    // spec: SW-14
    fn paths(&mut self) {
        let paths = &self.switch.paths;
        if paths.load_balancing == LoadBalancing::Flowlet && paths.hash.is_direct() {
            let hash = SWITCH_ATTRIBUTES.find("EcmpHashMethod").map(|a| a.show(self.switch));
            self.refuse(
                "LoadBalancingMethod",
                format!(
                    "needs a hash of the flow, and EcmpHashMethod is {}",
                    hash.unwrap_or_default()
                ),
                "set EcmpHashMethod to crc32WithSalt, crc32, hashWithSalt or hash, or this to none",
            );
        }
    }

    // spec: SW-5
    fn shares(&mut self) {
        let shares = &self.switch.buffer.pool_shares;
        let ppm = shares.iter().map(|share| u64::from(share.as_ppm())).sum::<u64>();
        if ppm > 1_000_000 {
            let wanted = "shares must add up to 1 at most".to_owned();
            self.refuse("PoolAllocationMap", wanted, "lower some of them");
        }
    }

    // spec: SW-8, SW-11
    fn thresholds(&mut self) {
        let (buffer, ecn) = (&self.switch.buffer, &self.switch.ecn);
        let (xoff, max) = (buffer.xoff, ecn.max_threshold);
        if buffer.xon > xoff {
            let wanted = format!("must be at most StaticPoolXoffThreshold, {}", show_bytes(xoff));
            self.refuse("StaticPoolXonThreshold", wanted, "lower it, or raise the other");
        }
        if ecn.min_threshold > max {
            let wanted = format!("must be at most MaxThreshold, {max}");
            self.refuse("MinThreshold", wanted, "lower it, or raise the other");
        }
    }

    /// Every pool that a class uses holds a full packet for each port.
    // spec: SW-5
    fn pools(&mut self, ports: usize) {
        let pools = self.switch.pool_bytes(ports);
        let needed = LARGEST_DATAGRAM * ports as u64;
        let classes = if self.switch.uet_policy_enabled { 3 } else { SWITCH_CLASSES };
        let mut used = self.switch.class_pools()[..classes].to_vec();
        used.sort_unstable();
        used.dedup();
        for pool in used {
            let bytes = pools.get(pool as usize).copied().unwrap_or(0);
            if bytes < needed {
                self.refuse(
                    "TotalSharedBufferSize",
                    format!(
                        "pool {pool} must hold a full packet for each of {ports} ports, {needed} bytes, and has {bytes}"
                    ),
                    "raise it, lower HeadRoomPerPortLimit, give the pool a larger share in PoolAllocationMap, or map no class to it",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;

    /// The problems of the reference with these attributes set, at four ports.
    fn problems(settings: &[(&str, &str)]) -> Vec<String> {
        let mut switch = SwitchAttributes::default();
        for (name, value) in settings {
            SWITCH_ATTRIBUTES.set(&mut switch, name, value).expect("each is allowed by itself");
        }
        switch.problems(4).iter().map(ToString::to_string).collect()
    }

    const PLAIN: [(&str, &str); 2] = [("UETPolicyEnabled", "false"), ("TrimmingEnabled", "false")];
    const PFC: (&str, &str) = ("EnablePFC", "[1, 0, 0, 0, 0, 0, 0, 0]");

    #[test]
    fn every_profile_is_fine() {
        for profile in Profile::ALL {
            assert_eq!(profile.switch().problems(64), [], "{profile:?}");
        }
        assert_eq!(problems(&PLAIN), [""; 0]);
        assert_eq!(problems(&[PLAIN[0], PLAIN[1], PFC]), [""; 0]);
        assert_eq!(problems(&[PLAIN[1], PFC]), [""; 0], "the UET policy alone may pause");
    }

    // spec: SW-18, DSCP-6
    #[test]
    fn trimming_needs_the_uet_policy_and_no_lossless_class() {
        let policy = "`TrimmingEnabled = true`: needs the UET policy, and UETPolicyEnabled is false; set UETPolicyEnabled to true, or this to false";
        let pfc = "`EnablePFC = [0, 0, 0, 0, 0, 0, 0, 1]`: no class may be lossless where TrimmingEnabled is true; set every entry to 0, or TrimmingEnabled to false";
        let lossless = ("EnablePFC", "[0, 0, 0, 0, 0, 0, 0, 1]");
        assert_eq!(problems(&[PLAIN[0]]), [policy]);
        assert_eq!(problems(&[lossless]), [pfc]);
        assert_eq!(problems(&[PLAIN[0], lossless]), [policy, pfc]);
    }

    // spec: SW-14
    #[test]
    fn flowlets_need_a_hash_of_the_flow() {
        let flowlet = ("LoadBalancingMethod", "flowlet");
        for method in ["crc32WithSalt", "crc32", "hashWithSalt", "hash"] {
            assert_eq!(problems(&[flowlet, ("EcmpHashMethod", method)]), [""; 0]);
        }
        for method in ["dpr", "dprWithFallback"] {
            let refused = format!(
                "`LoadBalancingMethod = flowlet`: needs a hash of the flow, and EcmpHashMethod is {method}; set EcmpHashMethod to crc32WithSalt, crc32, hashWithSalt or hash, or this to none"
            );
            assert_eq!(problems(&[flowlet, ("EcmpHashMethod", method)]), [refused]);
            assert_eq!(problems(&[("EcmpHashMethod", method)]), [""; 0]);
        }
    }

    // spec: SW-5
    #[test]
    fn every_pool_in_use_holds_a_frame_for_each_port() {
        let with = |size: &str, more: &[(&str, &str)]| {
            problems(&[&PLAIN[..], &[("TotalSharedBufferSize", size)], more].concat())
        };
        // Pool 1 has a tenth.
        assert_eq!(with("166400", &[]), [""; 0]);
        assert_eq!(
            with("166390", &[]),
            [
                "`TotalSharedBufferSize = 166390 B`: pool 1 must hold a full packet for each of 4 ports, 16640 bytes, and has 16639; raise it, lower HeadRoomPerPortLimit, give the pool a larger share in PoolAllocationMap, or map no class to it"
            ]
        );
        let one_pool = ("TrafficClassPoolMapping", "[0, 0, 0, 0, 0, 0, 0, 0]");
        assert_eq!(with("166390", &[one_pool]), [""; 0], "a pool that no class uses may be small");
        assert_eq!(with("1024000", &[PFC]).len(), 2, "headroom takes all of it");
        assert_eq!(with("1190400", &[PFC]), [""; 0]);
        let beyond = ("TrafficClassPoolMapping", "[0, 1, 7, 0, 0, 0, 0, 0]");
        assert!(with("1 GB", &[beyond])[0].contains("pool 7 must hold"));
        // Of three pools 1.5 : 1 : 1 the smaller ones have two sevenths.
        assert_eq!(problems(&[("TotalSharedBufferSize", "58240")]), [""; 0]);
        assert_eq!(problems(&[("TotalSharedBufferSize", "58233")]).len(), 2);
    }

    // spec: SW-8, SW-11
    #[test]
    fn thresholds_are_in_order() {
        assert_eq!(
            problems(&[("StaticPoolXonThreshold", "700 KB"), ("MinThreshold", "0.8")]),
            [""; 0]
        );
        assert_eq!(
            problems(&[("StaticPoolXonThreshold", "700001"), ("MinThreshold", "0.81")]),
            [
                "`StaticPoolXonThreshold = 700001 B`: must be at most StaticPoolXoffThreshold, 700 KB; lower it, or raise the other",
                "`MinThreshold = 0.81`: must be at most MaxThreshold, 0.8; lower it, or raise the other",
            ]
        );
    }

    // spec: SW-5
    #[test]
    fn shares_add_up_to_one_at_most() {
        assert_eq!(
            problems(&[("PoolAllocationMap", "[0.9, 0.100001]")]),
            [
                "`PoolAllocationMap = [0.9, 0.100001]`: shares must add up to 1 at most; lower some of them"
            ]
        );
    }

    // spec: SW-5, SW-15
    #[test]
    fn pools_divide_what_headroom_leaves_and_the_last_takes_the_rounding() {
        let mut switch = SwitchAttributes::default();
        switch.buffer.total_bytes = 1_000_003;
        assert_eq!(switch.pool_bytes(4), [428_573, 285_715, 285_715]);
        switch.uet_policy_enabled = false;
        assert_eq!(switch.pool_bytes(4), [900_002, 100_001]);
        SWITCH_ATTRIBUTES.set(&mut switch, "PoolAllocationMap", "[0.3, 0.3, 0.4]").unwrap();
        assert_eq!(switch.pool_bytes(4), [300_000, 300_000, 400_003]);
        switch.buffer.headroom_per_port = 100_000;
        switch.buffer.lossless[3] = true;
        assert_eq!(switch.pool_bytes(4), [180_000, 180_000, 240_003]);
        assert_eq!(switch.pool_bytes(11), [0, 0, 0]);
        assert_eq!(SwitchAttributes::default().pool_bytes(64).iter().sum::<u64>(), 256_000_000);
    }
}
