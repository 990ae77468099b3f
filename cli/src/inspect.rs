//! `ferric list`, `info`, `stat`, `bind`, `unbind`: what there is and what it says of itself.
use crate::device;
use ferric_abi::csr;
use ferric_driver::vfio::sysfs::{Found, Sysfs};
use ferric_driver::{Address, Capabilities, Config, Context};
use ferric_twin::counters;
use serde_json::{json, Value};
use std::error::Error;

type Done = Result<(), Box<dyn Error>>;

/// What `ferric list` says of a function: `None` in `problem` when it can be opened.
fn row(sysfs: &Sysfs, f: &Found) -> (Value, String) {
    let problem = sysfs.check(&f.address).err().map(|e| e.to_string());
    let kind = if f.is_virtual { "virtual" } else { "physical" };
    let driver = f.driver.as_deref().unwrap_or("-");
    let group = f.group.map_or("-".to_string(), |g| g.to_string());
    let state = problem.as_deref().map_or("ready", |p| p.split_once(": ").map_or(p, |(_, rest)| rest));
    let text = format!("{}  {kind:8}  driver {driver}  group {group}  {state}", f.address);
    (json!({ "address": f.address, "virtual": f.is_virtual, "driver": f.driver, "group": f.group, "ready": problem.is_none(), "problem": problem }), text)
}

/// Prints every Ferric function on the PCI bus.
pub fn list(sysfs: &Sysfs, as_json: bool) -> Done {
    let rows: Vec<_> = sysfs.list().iter().map(|f| row(sysfs, f)).collect();
    if as_json {
        println!("{}", Value::from(rows.into_iter().map(|r| r.0).collect::<Vec<_>>()));
    } else if rows.is_empty() {
        println!("no Ferric card on the PCI bus; a simulated one: ferric card serve --socket /tmp/ferric.sock");
    } else {
        rows.iter().for_each(|r| println!("{}", r.1));
    }
    Ok(())
}

/// Names of the transport and feature bits.
fn features(bits: u32) -> Vec<&'static str> {
    let names = [(0, "rc"), (1, "uc"), (2, "ud"), (3, "raw"), (4, "uet"), (16, "wqe-doorbell"), (17, "chaos-build"), (22, "addresses")];
    names.iter().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name).collect()
}

fn describe(name: &str, c: &Capabilities) -> Value {
    json!({ "device": name, "interface": format!("{}.{}", c.version >> 16, c.version & 0xffff), "width_bits": c.width * 8, "functions": c.functions, "qps": c.qps, "cqs": c.cqs,
        "eqs": c.eqs, "memory_regions": c.mrs, "protection_domains": c.pds, "max_sge": c.max_sge, "max_inline": c.max_inline, "features": features(c.features) })
}

/// Of so many functions the addresses are shown: each number is a query.
const FEW: u32 = 64;

/// An address of a function in words.
fn address((function, number, a): &(u32, u32, Address)) -> String {
    let vlan = a.vlan.map_or(String::new(), |vid| format!(",vlan={vid}"));
    format!("function={function},number={number},ip={},mac={}{vlan}", a.ip, a.mac)
}

/// Prints objects as `name value` lines.
fn lines(value: &Value) {
    for (k, v) in value.as_object().into_iter().flatten() {
        let text = match v {
            Value::String(s) => s.clone(),
            Value::Array(a) => a.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            other => other.to_string(),
        };
        println!("{k:20} {text}");
    }
}

/// Prints what a card is.
pub fn info(name: &str, as_json: bool) -> Done {
    let device = device::open(name)?;
    let ctx = Context::open(device, Config::default())?;
    let mut value = describe(name, ctx.capabilities());
    value["tick"] = ctx.device().read32(csr::TICK).into();
    // This function's own have gone with whoever had it before; others may be in use.
    if ctx.has_addresses() && ctx.capabilities().function == 0 && ctx.capabilities().functions <= FEW {
        value["addresses"] = ctx.all_addresses()?.iter().map(address).collect::<Vec<_>>().into();
    }
    if as_json {
        println!("{value}")
    } else {
        lines(&value)
    }
    Ok(())
}

/// Prints a card's counters: all, or those whose name has `filter` in it, of `function` alone if that is said; zero ones only with `all`.
pub fn stat(name: &str, filter: Option<&str>, function: Option<u32>, all: bool, as_json: bool) -> Done {
    let ctx = Context::open(device::open(name)?, Config::default())?;
    let names = counters::NAMES;
    let count = names.len() as u32;
    let values = function.map_or_else(|| ctx.counters(0, count), |function| ctx.counters_of(function, 0, count))?;
    let shown = names.iter().zip(&values).filter(|(n, v)| filter.is_none_or(|f| n.contains(f)) && (all || **v != 0));
    if as_json {
        let map: serde_json::Map<String, Value> = shown.map(|(n, v)| (n.to_string(), Value::from(*v))).collect();
        println!("{}", Value::from(map));
    } else {
        shown.for_each(|(n, v)| println!("{n:32} {v}"));
    }
    Ok(())
}

/// Binds or unbinds functions.
pub fn bind(sysfs: &Sysfs, addresses: &[String], to_vfio: bool) -> Done {
    for a in addresses {
        if to_vfio {
            sysfs.bind(a)?
        } else {
            sysfs.unbind(a)?
        }
        println!("{a}: {}", if to_vfio { "given to vfio-pci; to use it without root: sudo chown $USER /dev/vfio/GROUP (see ferric list)" } else { "given back to the kernel" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feature_bits_have_names() {
        assert_eq!(features(0x3_000b), ["rc", "uc", "raw", "wqe-doorbell", "chaos-build"]);
        assert!(features(0).is_empty());
    }

    #[test]
    fn addresses_are_shown() {
        let own = Address { ip: "10.0.0.1".parse().unwrap(), mac: ferric_driver::Mac([2, 0xfe, 10, 0, 0, 1]), vlan: None };
        assert_eq!(address(&(1, 0, own)), "function=1,number=0,ip=10.0.0.1,mac=02:fe:0a:00:00:01");
        assert_eq!(address(&(2, 15, Address { vlan: Some(7), ..own })), "function=2,number=15,ip=10.0.0.1,mac=02:fe:0a:00:00:01,vlan=7");
    }
}
