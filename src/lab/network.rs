//! Builds a plan's namespaces and links inside the sandbox, and removes them.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use super::error::{LabError, while_doing};
use super::ip;
use super::namespace::{NamespaceHandle, name_path};
use super::plan::{EndPlan, NetworkPlan, mac_text};
use super::sandbox::Sandbox;
use super::sys;

/// A built network: a namespace for each node, a veth pair for each link.
///
/// Dropping it, like [`Network::down`], removes what it made. Processes that
/// still run in a namespace keep it alive: end them first.
#[derive(Debug)]
pub struct Network {
    /// The namespaces whose names this network has made, or is about to.
    names: Vec<String>,
    namespaces: BTreeMap<String, NamespaceHandle>,
    interfaces: Vec<[String; 2]>,
}

impl Network {
    /// Builds `plan`. Nothing is touched outside the sandbox, and nothing in it
    /// but what is made here. When it fails, what was made is removed again.
    ///
    /// # Errors
    /// [`LabError::Plan`] and [`LabError::NameTaken`] before anything is made;
    /// the others when a step fails.
    // spec: REL-10
    pub fn build(_sandbox: &Sandbox, plan: &NetworkPlan) -> Result<Self, LabError> {
        plan.check()?;
        if let Some(taken) = plan.nodes.iter().find(|name| name_path(name).exists()) {
            return Err(LabError::NameTaken(taken.clone()));
        }
        let mut network = Self {
            names: plan.nodes.clone(),
            namespaces: BTreeMap::new(),
            interfaces: plan.interface_names(),
        };
        ip::batch(&creation(plan, &network.interfaces))?;
        for name in &plan.nodes {
            let namespace = NamespaceHandle::open(name)?;
            namespace.apply_kernel_settings()?;
            network.namespaces.insert(name.clone(), namespace);
        }
        network.each_node(plan, ready)?;
        network.each_node(plan, await_carrier)?;
        Ok(network)
    }

    /// The namespace of the node `name`; `None` when there is no such node, or
    /// no longer.
    pub fn namespace(&self, name: &str) -> Option<&NamespaceHandle> {
        self.namespaces.get(name)
    }

    /// The names of the two interfaces of link number `link` of the plan, each
    /// in its node's namespace; `None` when there is no such link.
    pub fn interfaces(&self, link: usize) -> Option<&[String; 2]> {
        self.interfaces.get(link)
    }

    /// Removes the namespaces, and with them their interfaces. Does nothing
    /// when that is done already.
    ///
    /// # Errors
    /// The first name that could not be removed; the others are.
    // spec: REL-10
    pub fn down(&mut self) -> Result<(), LabError> {
        self.namespaces.clear();
        let removed: Vec<_> = self.names.drain(..).map(|name| remove_name(&name)).collect();
        removed.into_iter().collect()
    }

    /// Leaves the removal to the end of the sandbox, that is of this process:
    /// the kernel then does it all at once.
    pub fn leave_to_sandbox(mut self) {
        self.names.clear();
    }

    /// Takes a step at every node, in its namespace.
    fn each_node(
        &self,
        plan: &NetworkPlan,
        step: fn(&NamespaceHandle, &[Interface<'_>]) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        let mut interfaces: BTreeMap<&str, Vec<Interface<'_>>> = BTreeMap::new();
        for (link, names) in plan.links.iter().zip(&self.interfaces) {
            let [first, second] = &link.ends;
            for (end, peer, name) in [(first, second, &names[0]), (second, first, &names[1])] {
                let interface = Interface { name, end, peer: &peer.node };
                interfaces.entry(&end.node).or_default().push(interface);
            }
        }
        interfaces.iter().try_for_each(|(&node, interfaces)| {
            self.namespaces.get(node).map_or(Ok(()), |namespace| step(namespace, interfaces))
        })
    }
}

/// An interface of a node: its name, its part of the plan and the node at the
/// other end of its link.
struct Interface<'a> {
    name: &'a str,
    end: &'a EndPlan,
    peer: &'a str,
}

/// Readies the interfaces of one node and brings them up, last of all.
fn ready(namespace: &NamespaceHandle, interfaces: &[Interface<'_>]) -> Result<(), LabError> {
    namespace.enter_scope(|| {
        for Interface { name, end, .. } in interfaces {
            let doing = || format!("turn off offloads of {name} in {}", end.node);
            sys::disable_offloads(name).map_err(while_doing(doing()))?;
        }
        let commands: Vec<String> = interfaces.iter().flat_map(configuration).collect();
        ip::batch(&commands)
    })?
}

/// Sees to it that the first frame of every interface of one node gets through.
fn await_carrier(
    namespace: &NamespaceHandle,
    interfaces: &[Interface<'_>],
) -> Result<(), LabError> {
    namespace.enter_scope(|| {
        for Interface { name, end, .. } in interfaces {
            let doing = || format!("find the carrier of {name} in {}", end.node);
            match sys::notice_carrier(name) {
                Ok(true) => {}
                Ok(false) => return Err(while_doing(doing())(io::ErrorKind::NetworkDown.into())),
                Err(error) => return Err(while_doing(doing())(error)),
            }
        }
        Ok(())
    })?
}

impl Drop for Network {
    fn drop(&mut self) {
        // Names that stay behind end with the sandbox.
        let _ = self.down();
    }
}

/// The commands that make all namespaces and links. The ends of a link are made
/// inside their namespaces and never appear in another.
// spec: REL-10
fn creation(plan: &NetworkPlan, interfaces: &[[String; 2]]) -> Vec<String> {
    let nodes = plan.nodes.iter().map(|name| format!("netns add {name}"));
    let links = plan.links.iter().zip(interfaces).map(|(link, names)| {
        let end = |index: usize| {
            let EndPlan { node, mac, .. } = &link.ends[index];
            let (mac, mtu) = (mac_text(*mac), link.mtu);
            format!("{} mtu {mtu} address {mac} netns {node}", names[index])
        };
        format!("link add {} type veth peer name {}", end(0), end(1))
    });
    nodes.chain(links).collect()
}

/// The commands, run in its namespace, that ready one interface.
fn configuration(interface: &Interface<'_>) -> Vec<String> {
    let Interface { name, end, peer } = interface;
    let mut commands = vec![format!("link set {name} alias {}_to_{peer}", end.node)];
    for prefix in &end.addresses {
        commands.push(format!("address add {prefix} dev {name}"));
    }
    commands.push(format!("link set {name} up"));
    for prefix in &end.routes {
        commands.push(format!("route add {prefix} dev {name} scope link"));
    }
    // spec: SW-1
    for (address, mac) in &end.neighbours {
        let mac = mac_text(*mac);
        commands.push(format!("neighbour add {address} lladdr {mac} dev {name} nud permanent"));
    }
    commands
}

/// Removes the name of a namespace, or what is there of it.
fn remove_name(name: &str) -> Result<(), LabError> {
    let path = name_path(name);
    match sys::detach(&path) {
        // Made by half: a file that is no mount yet, or not even that.
        Err(error) if !matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => {
            return Err(while_doing(format!("detach {}", path.display()))(error));
        }
        _ => {}
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(while_doing(format!("remove {}", path.display()))(error))
        }
        _ => Ok(()),
    }
}
