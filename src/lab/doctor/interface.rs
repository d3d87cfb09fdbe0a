//! What the kernel says of one interface.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;

use crate::io::interface::permanent_neighbours;
use crate::io::interface_mtu;
use crate::lab::error::{LabError, while_doing};
use crate::lab::namespace::NamespaceHandle;
use crate::lab::{ip, sys};
use crate::wire::mac::MacAddr;

/// What matters of an interface.
pub(super) struct Facts {
    pub(super) mtu: u32,
    /// Those that are on, as `ethtool -K` spells them.
    pub(super) offloads: Vec<&'static str>,
    /// The effective one: the larger of the interface's and that of all.
    pub(super) rp_filter: u32,
    pub(super) ipv6: bool,
    /// Those that are known for good.
    pub(super) neighbours: BTreeMap<Ipv4Addr, MacAddr>,
    /// The queueing discipline.
    pub(super) queueing: String,
}

impl Facts {
    /// Asks in `namespace`; `None` when there is no such interface.
    pub(super) fn gather(
        namespace: &NamespaceHandle,
        name: &str,
    ) -> Result<Option<Self>, LabError> {
        namespace.enter_scope(|| {
            let Ok(mtu) = interface_mtu(name) else { return Ok(None) };
            let doing = || format!("read the offloads of {name} in {}", namespace.name());
            Ok(Some(Self {
                mtu,
                offloads: sys::active_offloads(name).map_err(while_doing(doing()))?,
                rp_filter: setting("ipv4", "all", "rp_filter")
                    .max(setting("ipv4", name, "rp_filter"))
                    .unwrap_or(0),
                ipv6: setting("ipv6", name, "disable_ipv6") == Some(0),
                neighbours: permanent_neighbours(name),
                queueing: ip::queueing(name)?,
            }))
        })?
    }
}

/// A number below /proc/sys/net; `None` where the kernel has no such thing.
fn setting(protocol: &str, interface: &str, name: &str) -> Option<u32> {
    let path = format!("/proc/sys/net/{protocol}/conf/{interface}/{name}");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
