//! The verdict from the trace alone: rules R01 to R17 of the catalogue, in the order of its section 4.4.

use super::{kernels, operators};
use crate::catalogue;
use crate::sites::Bundle;
use crate::vocabulary::{Attribution, Copy, Direction, Evidence, HostMemory, Kind, ThreadRole, Verdict};
use crate::waits::Found;
use crate::waits::api::Blocking;

/// A bundle and what its waits add up to.
pub struct Subject<'a> {
    pub bundle: &'a Bundle,
    pub waits: usize,
    /// Waits that returned while a device still worked: it was not that device they waited for.
    pub other_device: usize,
    /// Whether which device the waits were for is not recorded.
    pub device_unknown: bool,
    /// Host time inside the waits, and the part of it during which the op awaited last ran, in ns.
    pub blocked_ns: i64,
    pub awaited_ns: i64,
}

type Rule = fn(&Subject) -> Option<Verdict>;

/// In order of precedence.
const RULES: &[Rule] = &[
    allocator,
    library,
    operator,
    around,
    upload,
    redundant,
    idle,
    pending_copy,
    collective,
    explicit,
    read,
];

/// Rule of evidence that something is missing to decide.
pub const UNDECIDED: &str = "undecided";

/// Judges one bundle.
pub fn judge(subject: &Subject) -> Verdict {
    let mut verdict = RULES.iter().find_map(|rule| rule(subject)).unwrap_or_else(|| unattributed(subject));
    if subject.bundle.attribution == Attribution::PythonSample {
        verdict
            .evidence
            .push(Evidence::new("sampled", format!("placed by sampling: {}", subject.bundle.note)));
    }
    verdict
}

fn verdict(
    kind: Kind,
    confidence: f64,
    pattern: &'static str,
    rule: &'static str,
    text: impl Into<String>,
) -> Verdict {
    Verdict {
        class: kind.class(),
        kind,
        confidence,
        pattern: Some(pattern).filter(|p| !p.is_empty()),
        evidence: vec![Evidence::new(rule, text)],
    }
}

/// R13, G01 to G03, G07: freeing and re-allocating memory; the Python line is innocent.
fn allocator(s: &Subject) -> Option<Verdict> {
    let b = s.bundle;
    let in_allocator =
        b.chain.iter().any(|c| c.contains("CUDACachingAllocator") || c.contains("CachingHostAllocator"));
    let empty_cache =
        b.method() == Some("emptyCache") || b.frames.iter().any(|f| &*f.function == "empty_cache");
    let drains = matches!(b.found, Found::Pending | Found::Unknown);
    let text = match b.blocking {
        Blocking::Free if drains => format!("{} drains the device before it frees", b.api),
        Blocking::HostFree if drains => {
            format!("{} waits for GPU work that may still use the host memory", b.api)
        }
        Blocking::Free | Blocking::HostFree => {
            format!(
                "{} would drain the device before it frees; here nothing was pending, it cost only the call",
                b.api
            )
        }
        Blocking::HostAlloc => {
            format!("{} returned right when the pending GPU work ended: it drained the device", b.api)
        }
        _ if in_allocator => {
            "the native chain shows PyTorch's caching allocator giving memory back to the driver".to_owned()
        }
        _ => return None,
    };
    let pattern = match (empty_cache, in_allocator) {
        (true, _) => "G01",
        (_, true) => "G02",
        _ => "G07",
    };
    let confidence = if drains { 0.97 } else { 0.9 };
    Some(verdict(Kind::Allocator, confidence, pattern, "R13", text))
}

/// R17: the innermost library frame is one that the catalogue knows.
fn library(s: &Subject) -> Option<Verdict> {
    let pattern = library_pattern(s.bundle)?;
    let kind = pattern.kind?;
    let upload = s.bundle.copy.is_some_and(|c| c.direction == Direction::HostToDevice);
    // An upload inside known code is still an upload; a plain synchronize() is judged by the timeline.
    if upload || is_plain_synchronize(pattern.id) {
        return None;
    }
    let frame = s.bundle.through().or(s.bundle.frames.first())?;
    let mut text = format!(
        "the wait happens inside {} ({}): {}",
        short_file(&frame.file),
        frame.function,
        pattern.title
    );
    if pattern.intended {
        text += "; it waits on purpose";
    }
    Some(verdict(kind, 0.95, pattern.id, "R17", text))
}

fn library_pattern(bundle: &Bundle) -> Option<&'static catalogue::Pattern> {
    let inside = &bundle.frames[..bundle.user.unwrap_or(bundle.frames.len())];
    let frames: Vec<(&str, &str)> = inside.iter().map(|f| (&*f.file, &*f.function)).collect();
    catalogue::library_site(&frames, None)
}

fn is_plain_synchronize(id: &str) -> bool {
    matches!(id, "F01" | "F02" | "F03")
}

/// Section 4.5: the operation named natively or by NVTX.
fn operator(s: &Subject) -> Option<Verdict> {
    let b = s.bundle;
    let uploads = b.copy.is_some_and(|c| c.direction == Direction::HostToDevice);
    let bare = b.copy.is_none() && b.blocking == Blocking::Context;
    if uploads || bare {
        return None;
    }
    if b.method() == Some("index_scalar") {
        return Some(verdict(
            Kind::DynamicShape,
            0.97,
            "A08",
            "4.5",
            "the native chain names THPVariable_index_scalar: a tensor serves as an index, bound or size, which Python needs as a number",
        ));
    }
    if b.chain.iter().any(|c| c.contains("PythonArgs::scalar")) {
        return Some(verdict(
            Kind::RoundTrip,
            0.95,
            "A11",
            "4.5",
            "the native chain converts a GPU tensor into a Python number argument: the value goes straight back to the GPU",
        ));
    }
    let native = operators::of_chain(&b.chain);
    let (found, source) = match operators::find(&native) {
        Some(found) => (found, "native chain"),
        None if native.is_empty() => {
            (operators::find(&operators::of_ranges(&b.ranges))?, "enclosing NVTX range")
        }
        None => return None,
    };
    let (op, name) = found;
    let kind = op.kind?;
    let (pattern, under) = match b.method() {
        Some("getitem") if op.pattern == "B01" => ("B02", ", under an index with a mask"),
        Some("setitem") if op.pattern == "B01" => ("B03", ", under an assignment through a mask"),
        _ => (op.pattern, ""),
    };
    // A truth test proves that Python has the answer, not that it branches on it.
    let confidence = if op.pattern == "A03" { 0.9 } else { 0.97 };
    Some(verdict(
        kind,
        confidence,
        pattern,
        "4.5",
        format!("the {source} names {name}{under}: {}", op.because),
    ))
}

/// R08 to R12, R14, R15: kernels around the wait, where neither chain nor range names the operation.
fn around(s: &Subject) -> Option<Verdict> {
    let b = s.bundle;
    if !b.chain.is_empty() || !operators::of_ranges(&b.ranges).is_empty() {
        return None;
    }
    let sign = kernels::find(b.copy, &b.neighbours)?;
    Some(verdict(sign.kind, sign.confidence, sign.pattern, sign.rule, sign.because))
}

/// R01: the copy goes to the GPU: no value reaches the CPU.
fn upload(s: &Subject) -> Option<Verdict> {
    let copy = s.bundle.copy.filter(|c| c.direction == Direction::HostToDevice)?;
    let from = match copy.host_memory {
        HostMemory::Pageable => "from pageable memory",
        HostMemory::Pinned => "from pinned memory",
        _ => "from the host",
    };
    let size = crate::text::bytes(copy.bytes);
    let text = match s.bundle.blocking {
        Blocking::Stream => format!(
            "a {size} upload {from} on the same stream comes right before the synchronisation: nothing is read back, the wait only protects the source buffer"
        ),
        _ => format!(
            "a {size} upload {from}: nothing is read back, the host only waits until the source is copied"
        ),
    };
    Some(verdict(Kind::Upload, 0.98, operators::upload_pattern(s.bundle.method()), "R01", text))
}

/// Whether the wait is surely a synchronisation by itself, without a copy of its own or one to complete.
fn is_bare(s: &Subject) -> bool {
    let b = s.bundle;
    b.copy.is_none()
        && !b.completes
        && !b.copy_lost
        && matches!(b.blocking, Blocking::Stream | Blocking::Event | Blocking::Context)
}

/// R04: nothing submitted since an earlier wait drained the same streams.
fn redundant(s: &Subject) -> Option<Verdict> {
    (is_bare(s) && s.bundle.found == Found::Drained).then(|| {
        verdict(
            Kind::Redundant,
            0.97,
            bare_pattern(s.bundle),
            "R04",
            "an earlier wait of this thread had drained the same work, and nothing was submitted in between",
        )
    })
}

/// R05, R06: nothing pending when the wait began.
fn idle(s: &Subject) -> Option<Verdict> {
    if !is_bare(s) || s.bundle.found != Found::Nothing {
        return None;
    }
    let rule = if s.bundle.blocking == Blocking::Event { "R06" } else { "R05" };
    let mut v = verdict(
        Kind::Idle,
        0.95,
        bare_pattern(s.bundle),
        rule,
        match s.waits {
            1 => "all GPU work that it could wait for had ended before it began; it cost only the call"
                .to_owned(),
            // With its number: other waits of the line may have found work.
            n => format!(
                "{n} waits began when all GPU work that they could wait for had ended; they cost only the call"
            ),
        },
    );
    if s.other_device > 0 {
        v.evidence.push(Evidence::new(
            "device",
            format!(
                "{} of {} returned while a device still worked: it was not that device they waited for",
                s.other_device, s.waits
            ),
        ));
    } else if s.device_unknown {
        v.evidence.push(Evidence::new(
            "device",
            "which device it was for is not recorded; none of the process's devices had work pending",
        ));
    }
    Some(v)
}

/// R03: it completes an earlier copy to the host: a data barrier, whose reader only the source shows.
fn pending_copy(s: &Subject) -> Option<Verdict> {
    s.bundle.completes.then(|| {
        verdict(Kind::ValueRead, 0.5, "D05", "R03",
            "an earlier copy to the host was still unawaited: this wait completes it, and what reads the buffer is not in the trace")
    })
}

/// A bare synchronisation that spent its time in a collective: the peer was late, and the GPU would have waited for it
/// without the host as well. No false dependency.
fn collective(s: &Subject) -> Option<Verdict> {
    let name = s.bundle.neighbours.awaited.as_deref().filter(|n| kernels::is_collective(n))?;
    if !is_bare(s) || s.awaited_ns < s.blocked_ns / 2 {
        return None;
    }
    Some(verdict(
        Kind::Barrier,
        0.7,
        "H03",
        "collective",
        format!(
            "{} of its {} passed while {name} ran: a peer came late, and without this wait the GPU would have waited for it all the same",
            crate::text::duration(s.awaited_ns),
            crate::text::duration(s.blocked_ns)
        ),
    ))
}

/// R02: a bare synchronisation with work pending: nothing is transferred.
fn explicit(s: &Subject) -> Option<Verdict> {
    let b = s.bundle;
    if !is_bare(s)
        || (matches!(b.found, Found::Unknown | Found::Unseen) && b.chain.is_empty() && b.frames.is_empty())
    {
        return None;
    }
    let mut v = verdict(
        Kind::Explicit,
        0.9,
        bare_pattern(b),
        "R02",
        "no copy comes with it and none to the host was outstanding: the CPU receives nothing",
    );
    if let Some(name) = b.neighbours.awaited.as_deref().filter(|n| kernels::is_collective(n)) {
        v.evidence.push(Evidence::new(
            "collective",
            format!("the last op it waited for is {name}: a late peer shows here too"),
        ));
    }
    if s.device_unknown {
        v.evidence.push(Evidence::new("device",
            "which device it was for is not recorded: it is taken to be the one whose work ended last before it returned"));
    }
    Some(v)
}

/// Catalogue entry of a bare synchronisation.
fn bare_pattern(b: &Bundle) -> &'static str {
    match b.blocking {
        Blocking::Stream => "F02",
        Blocking::Event => "F03",
        _ => "F01",
    }
}

/// A copy to the host: the CPU gets a value, and only its use decides.
fn read(s: &Subject) -> Option<Verdict> {
    let b = s.bundle;
    let copy = b.copy.filter(|c| c.direction == Direction::DeviceToHost)?;
    let by_library = library_pattern(b).map(|p| p.id);
    let names = operators::of_chain(&b.chain);
    let by_operator = operators::find(&names).map(|(o, _)| o.pattern);
    let pattern =
        by_library.or(by_operator).or(operators::read_pattern(b.method())).unwrap_or(default_read(copy));
    let what = match b.method() {
        Some(method) => format!("through Tensor.{}", method_name(method)),
        None => "by a copy".to_owned(),
    };
    let fact = format!("{} reach the CPU {what}", crate::text::bytes(copy.bytes));
    let mut v = verdict(Kind::ValueRead, 0.5, pattern, "4.4", fact);
    v.evidence
        .push(Evidence::new(UNDECIDED, "whether the program needs them there, the trace does not tell"));
    if b.role == ThreadRole::Autograd {
        v.evidence.push(Evidence::new("thread", "it happens on autograd's thread, inside the backward pass"));
    }
    Some(v)
}

fn default_read(copy: Copy) -> &'static str {
    if copy.bytes <= 16 { "A01" } else { "D01" }
}

/// Python's name of a method's C function.
fn method_name(method: &str) -> &str {
    match method {
        "float_scalar" => "__float__",
        "integral_scalar" => "__int__",
        "complex_scalar" => "__complex__",
        "getitem" => "__getitem__",
        "setitem" => "__setitem__",
        "contains" => "__contains__",
        m => m,
    }
}

/// Nothing says what was waited for.
fn unattributed(s: &Subject) -> Verdict {
    let text = match s.bundle.found {
        _ if s.bundle.copy_lost => {
            "a copy comes right before it, but the export does not hold which: a value may have been read or not"
        }
        Found::Unseen => {
            let blocked = crate::text::duration(s.blocked_ns);
            let text = format!(
                "it blocked {blocked} although nothing that the export records was pending: a host function, another process, or lost events"
            );
            return verdict(Kind::Unattributed, 0.3, "", "4.4", text);
        }
        Found::Unknown => "the export records no GPU work of this process: what it waited for cannot be told",
        _ => "no copy, frame, chain or range tells what it was for",
    };
    verdict(Kind::Unattributed, 0.3, "", "4.4", text)
}

/// The last two components of a path, for a sentence.
fn short_file(path: &str) -> String {
    let parts: Vec<&str> = path.rsplit(['/', '\\']).take(2).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}
