//! Linux' `virtio_ring.c`, built for user space and loaded.
use std::ffi::{c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Opaque to us.
pub type Handle = *mut c_void;

/// A piece of a buffer.
#[repr(C)]
pub struct Piece {
    pub at: *mut u8,
    pub length: c_uint,
}

/// What the C side calls (`struct hooks` of kernel.h).
#[repr(C)]
pub struct Hooks {
    pub barrier: extern "C" fn(),
    pub fault: extern "C" fn(),
    pub map: extern "C" fn(*mut u8, u64, c_int) -> u64,
    pub unmap: extern "C" fn(u64, u64),
    pub notify: extern "C" fn(c_uint, u32, bool),
}

macro_rules! functions {
    ($( $name:ident($($arg:ty),*) $(-> $out:ty)?; )*) => {
        /// The functions of driver.c. The library stays loaded.
        pub struct Linux { $( pub $name: unsafe extern "C" fn($($arg),*) $(-> $out)?, )* }
        impl Linux {
            fn load(path: &Path) -> Self {
                // SAFETY: the library was just built from our driver.c, whose functions have these types.
                unsafe {
                    let library = Box::leak(Box::new(libloading::Library::new(path).expect("the library that was just built")));
                    Self { $( $name: *library.get(concat!(stringify!($name), "\0").as_bytes()).expect(stringify!($name)), )* }
                }
            }
        }
    };
}

functions! {
    ring_hooks(*const Hooks);
    ring_device(u64) -> Handle;
    ring_features(Handle) -> u64;
    ring_device_free(Handle);
    ring_queue(Handle, c_uint, c_uint, *mut u64, *mut c_int) -> Handle;
    ring_add(Handle, *const Piece, c_uint, c_uint, *mut c_void) -> c_int;
    ring_kick(Handle) -> bool;
    ring_get(Handle, *mut c_uint) -> *mut c_void;
    ring_detach(Handle) -> *mut c_void;
    ring_disable(Handle);
    ring_enable(Handle, bool) -> bool;
    ring_interrupt(Handle) -> c_int;
    ring_delete(Handle);
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/linux_rings")
}

/// Names of `<...>` that the files below `dir` include.
fn includes(dir: &Path, into: &mut Vec<String>) {
    for path in std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            includes(&path, into);
        } else if path.extension().is_some_and(|e| e == "c" || e == "h") {
            let text = std::fs::read_to_string(&path).expect("a file of Linux");
            into.extend(text.lines().filter_map(|l| Some(l.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include <")?.split('>').next()?.to_owned())));
        }
    }
}

/// Compiles `sources` with the headers of a version that has been fetched, into a folder of its own that is gone when `then` has seen the result. Headers that Linux names and that are not of
/// virtio are empty: kernel.h has what is needed of them.
fn compile<T>(version: &str, sources: &[PathBuf], shared: bool, then: impl FnOnce(&Path) -> T) -> T {
    static BUILDS: AtomicUsize = AtomicUsize::new(0);
    let tree = tree(version);
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("linux-rings-{}-{}", std::process::id(), BUILDS.fetch_add(1, Ordering::Relaxed)));
    let empty = to.join("empty");
    std::fs::create_dir_all(&empty).expect("a folder of ours");
    let mut names = Vec::new();
    includes(&tree, &mut names);
    let is_theirs = |name: &str| ["include", "include/uapi"].iter().any(|dir| tree.join(dir).join(name).exists());
    for name in names.iter().filter(|name| !is_theirs(name) && *name != "stdint.h") {
        let path = empty.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder of ours");
        std::fs::write(path, "").expect("a file of ours");
    }
    let result = to.join("result");
    let mut cc = Command::new("cc");
    // Linux is built with these; what it warns of is not ours.
    cc.args(["-O1", "-g", "-w", "-std=gnu11", "-fPIC", "-fno-strict-aliasing", "-D__KERNEL__", "-include"]).arg(here().join("kernel.h"));
    for dir in [tree.join("include"), tree.join("include/uapi"), empty] {
        cc.arg("-I").arg(dir);
    }
    let built = cc.args(shared.then_some("-shared")).args(sources).arg("-o").arg(&result).output().expect("cc: ./scripts/setup installs it");
    assert!(built.status.success(), "Linux {version}: {}", String::from_utf8_lossy(&built.stderr));
    let outcome = then(&result);
    std::fs::remove_dir_all(&to).expect("a folder of ours");
    outcome
}

/// Says that a test is skipped, as `ferric_tests::programs::skipped` does, which this crate cannot use: the suite counts lines that begin so.
fn skipped(test: &str, why: &str) {
    use std::io::Write;
    let line = format!("skipped test {test}: {}\n", why.trim().replace('\n', "; "));
    std::io::stderr().write_all(line.as_bytes()).expect("standard error");
}

fn tree(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/linux-rings").join(version)
}

/// Whether the files of a version of Linux are there, or can be fetched. If not, the test says that it is skipped.
fn is_there(test: &str, version: &str) -> bool {
    static FETCHED: OnceLock<String> = OnceLock::new();
    if tree(version).exists() {
        return true;
    }
    let said = FETCHED.get_or_init(|| {
        let fetched = Command::new(here().join("fetch")).output().expect("model/tests/linux_rings/fetch");
        String::from_utf8_lossy(&fetched.stdout).into_owned()
    });
    let there = tree(version).exists();
    if !there {
        skipped(test, &format!("virtio_ring.c of Linux {version} cannot be fetched: {said}"));
    }
    there
}

/// `virtio_ring.c` of a version of Linux; `None`: the test is skipped.
pub fn linux(test: &str, version: &str, hooks: &Hooks) -> Option<Linux> {
    is_there(test, version).then(|| {
        println!("virtio_ring.c of {}", std::fs::read_to_string(tree(version).join("package")).unwrap_or_default().trim());
        let linux = compile(version, &[tree(version).join("drivers/virtio/virtio_ring.c"), here().join("driver.c")], true, Linux::load);
        // SAFETY: the hooks are functions, and C copies the table.
        unsafe { (linux.ring_hooks)(hooks) };
        linux
    })
}

/// What numbers.c prints with the headers of a version of Linux; `None`: the test is skipped.
pub fn numbers(test: &str, version: &str) -> Option<String> {
    is_there(test, version).then(|| {
        let printed = compile(version, &[here().join("numbers.c")], false, |program| Command::new(program).output().expect("a program"));
        String::from_utf8(printed.stdout).expect("text")
    })
}
