//! The verdict from the trace alone: the `R` rules, in order of precedence.

use super::subject::{Subject, bare_pattern, generic};
use super::{library, operators};
use crate::catalogue;
use crate::profile::ops::is_collective;
use crate::rules::grade::{self, Grade};
use crate::rules::{says, says_of};
use crate::sites::{Bundle, Freed, native, set_up};
use crate::vocabulary::{
    Attribution, Direction, Evidence, HostMemory, Kind, PatternId, PatternId::*, RuleId, ThreadRole, Verdict,
};
use crate::waits::api::Blocking;
use crate::waits::{Found, Guards};

type Judgement = fn(&Subject) -> Option<Verdict>;

/// In the order of the table of rules, each under its first id there: the first that applies decides.
const RULES: &[(RuleId, Judgement)] = &[
    (RuleId::R23, set_up),
    (RuleId::R13, allocator),
    (RuleId::R22, ddp_statistics),
    (RuleId::R17, library::judge),
    (RuleId::R18, operator),
    (RuleId::R12, around),
    (RuleId::R01, upload),
    (RuleId::R26, guard),
    (RuleId::R04, redundant),
    (RuleId::R05, idle),
    (RuleId::R03, pending_copy),
    (RuleId::Collective, collective),
    (RuleId::R02, explicit),
    (RuleId::R20, read),
];

pub fn judge(subject: &Subject) -> Verdict {
    let mut verdict =
        RULES.iter().find_map(|(_, rule)| rule(subject)).unwrap_or_else(|| unattributed(subject));
    if subject.bundle.attribution == Attribution::PythonSample {
        let text = format!("placed by sampling: {}", subject.bundle.note);
        verdict.evidence.push(Evidence::new(RuleId::Sampled, text));
    }
    verdict
}

/// The verdict of a rule for a catalogue entry, which gives the kind.
fn of_entry(grade: Grade, pattern: PatternId, text: impl Into<String>) -> Option<Verdict> {
    Some(says_of(grade, catalogue::entry(pattern).kind?, pattern, text))
}

/// R23: a library sets itself up.
fn set_up(s: &Subject) -> Option<Verdict> {
    if s.bundle.freed == Freed::ToStart {
        let text = "cuInit is right before it: a library starts a CUDA runtime of its own, and frees nothing";
        return of_entry(grade::R23, G08, text);
    }
    let (set_up, name) = set_up::find(&s.bundle.chain, &s.bundle.ranges)?;
    let text = format!("{} is around it: {}", native::short(name), set_up.what);
    of_entry(grade::R23, set_up.pattern, text)
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
        Blocking::HostAlloc => {
            format!("{} returned right when the pending GPU work ended: it drained the device", b.api)
        }
        Blocking::Free if drains => format!("{} drains the device before it frees", b.api),
        Blocking::HostFree if drains => {
            format!("{} waits for GPU work that may still use the host memory", b.api)
        }
        Blocking::Free | Blocking::HostFree => {
            let idle = "here nothing was pending, it cost only the call";
            format!("{} would drain the device before it frees; {idle}", b.api)
        }
        _ if in_allocator => {
            "the native chain shows PyTorch's caching allocator giving memory back to the driver".to_owned()
        }
        _ => return None,
    };
    let pattern = match (empty_cache, in_allocator) {
        (true, _) => G01,
        (_, true) => G02,
        _ => G07,
    };
    Some(says(grade::R13, pattern, text))
}

/// R22: DDP's statistics of itself, under the call of the model.
fn ddp_statistics(s: &Subject) -> Option<Verdict> {
    let waits = Some(s.bundle).filter(|b| b.blocking == Blocking::Event)?;
    let function = native::short(waits.chain.iter().find(|c| c.contains("c10d::Logger"))?);
    let text = format!("the native chain names {function}: DDP takes the time of its passes by events");
    of_entry(grade::R22, H05, text)
}

/// R18, R19: the native chain or NVTX names the operation.
fn operator(s: &Subject) -> Option<Verdict> {
    let b = s.bundle;
    if b.uploads() || b.copy.is_none() && b.blocking == Blocking::Context {
        return None;
    }
    if native::reads_in_engine(&b.chain) {
        let text = "the native chain names autograd's engine as who reads: it tests each gradient for NaN";
        return of_entry(grade::R18, A25, text.to_owned());
    }
    if let Some(op) = operators::converting(b.method(), &b.chain) {
        return of_entry(op.grades.0, op.pattern, format!("the native chain {}", op.because));
    }
    let native: Vec<&str> = native::operators(&b.chain).collect();
    let ranges = operators::of_ranges(&b.ranges);
    let (names, source) =
        if native.is_empty() { (ranges, "enclosing NVTX range") } else { (native, "native chain") };
    let (op, name) = operators::find(&names)?;
    let under = op.under.iter().find(|under| Some(under.0) == b.method());
    let (pattern, under) = under.map_or((op.pattern, ""), |&(_, pattern, under)| (pattern, under));
    of_entry(op.grades.0, pattern, format!("the {source} names {name}{under}: {}", op.because))
}

/// R08 to R12, R14 to R16, R24: kernels around the wait, where neither chain nor range names the operation.
fn around(s: &Subject) -> Option<Verdict> {
    let b = s.bundle;
    if !b.chain.is_empty() || !operators::of_ranges(&b.ranges).is_empty() {
        return None;
    }
    let (pattern, sign) = operators::around(b.copy, &b.neighbours)?;
    of_entry(sign.grade, pattern, sign.because)
}

/// R01: the copy goes to the GPU: no value reaches the CPU.
fn upload(s: &Subject) -> Option<Verdict> {
    let copy = s.bundle.copy.filter(|c| c.direction == Direction::HostToDevice)?;
    let from = match copy.host_memory {
        HostMemory::Pageable => "pageable memory",
        HostMemory::Pinned => "pinned memory",
        _ => "the host",
    };
    let text = match s.bundle.blocking {
        Blocking::Stream => {
            " on the same stream comes right before the synchronisation: nothing is read back, the wait only protects the source buffer"
        }
        _ => ": nothing is read back, the host only waits until the source is copied",
    };
    let known = library::known(s).filter(|known| known.sure && known.entries[0].kind == Some(Kind::Upload));
    let own = || operators::by_method(s.bundle.method(), copy.direction, &s.bundle.chain).unwrap_or(C03);
    let pattern = known.map_or_else(own, |known| known.entries[0].id);
    Some(says(grade::R01, pattern, format!("an H2D copy from {from}{text}")))
}

/// R26: the host relies on the wait for the memory of a copy.
fn guard(s: &Subject) -> Option<Verdict> {
    let b = s.bundle;
    let (grade, pattern, text) = match b.guards {
        Guards::Own => (
            grade::R26,
            D05,
            "its event was recorded right after a copy from or to pinned memory: it tells the host that the copy is done with that memory, also where it never had to wait",
        ),
        // R03 covers copies to the host.
        Guards::Perhaps if !b.completes => (
            grade::R26_OPEN,
            bare_pattern(b.blocking),
            "a copy from or to pinned memory may rely on it: whether the host then writes or reads that memory, the trace does not tell",
        ),
        _ => return None,
    };
    b.synchronises().then(|| says(grade, pattern, text))
}

/// Whether the wait surely is a synchronisation by itself, without a copy of its own or one to complete.
fn is_bare(s: &Subject) -> bool {
    s.bundle.synchronises() && !s.bundle.completes
}

/// R04: nothing submitted since an earlier wait drained the same streams.
fn redundant(s: &Subject) -> Option<Verdict> {
    let text =
        "an earlier wait of this thread had drained the same work, and nothing was submitted in between";
    let drained = is_bare(s) && s.bundle.found == Found::Drained;
    drained.then(|| says(grade::R04, bare_pattern(s.bundle.blocking), text))
}

/// R05, R06: nothing pending when the wait began.
fn idle(s: &Subject) -> Option<Verdict> {
    // Where the host sees what kernels write, a wait is needed even if the kernels were done this time.
    if !is_bare(s) || s.bundle.found != Found::Nothing || s.shared.is_some() {
        return None;
    }
    let grade = if s.bundle.blocking == Blocking::Event { grade::R06 } else { grade::R05 };
    let one = "all GPU work that it could wait for had ended before it began; it cost only the call";
    let all = "waits began when all GPU work that they could wait for had ended; they cost only the call";
    // Says how many: other waits of the line may have found work.
    let waits = s.bundle.waits.len();
    let text = if waits == 1 { one.to_owned() } else { format!("{waits} {all}") };
    let mut v = says(grade, bare_pattern(s.bundle.blocking), text);
    if s.other_device > 0 {
        let text = format!(
            "{} of {waits} returned while a device still worked: it was not that device they waited for",
            s.other_device
        );
        v.evidence.push(Evidence::new(RuleId::Device, text));
    } else if s.device_unknown {
        let text = "which device it was for is not recorded; none of the process's devices had work pending";
        v.evidence.push(Evidence::new(RuleId::Device, text));
    }
    Some(v)
}

/// R03: the wait completes an earlier D2H copy: only the source shows the buffer's reader.
fn pending_copy(s: &Subject) -> Option<Verdict> {
    let text = "an earlier copy to the host was still unawaited: this wait completes it, and what reads the buffer is not in the trace";
    s.bundle.completes.then(|| says(grade::R03, D05, text))
}

/// A bare synchronisation that spent its time in a collective: ranks wait for each other there, on the GPU,
/// without the host as well. The wait is needed.
fn collective(s: &Subject) -> Option<Verdict> {
    let name = awaited_collective(s.bundle)?;
    if !is_bare(s) || s.awaited_ns < s.blocked_ns / 2 {
        return None;
    }
    let (awaited, blocked) = (crate::text::duration(s.awaited_ns), crate::text::duration(s.blocked_ns));
    let text = format!(
        "{awaited} of its {blocked} passed while {name} ran, in which ranks wait for each other: without this wait the GPU would have waited there all the same"
    );
    Some(says(grade::COLLECTIVE, H03, text))
}

fn awaited_collective(b: &Bundle) -> Option<&str> {
    b.neighbours.awaited.as_deref().filter(|name| is_collective(name))
}

/// R02: a bare synchronisation with work pending: nothing is transferred.
fn explicit(s: &Subject) -> Option<Verdict> {
    let b = s.bundle;
    let unknown =
        matches!(b.found, Found::Unknown | Found::Unseen) && b.chain.is_empty() && b.frames.is_empty();
    if !is_bare(s) || unknown {
        return None;
    }
    let nothing = "no copy comes with it and none to the host was outstanding: the CPU receives nothing";
    let shared = |by| {
        format!(
            "no copy comes with it, but the program uses {by}: what kernels write may be read without one"
        )
    };
    let by_library = s.toolkit.is_some_and(|t| t.python) && b.chain.is_empty() && b.frames.is_empty();
    let grade = if s.shared.is_some() || by_library { grade::R02_OPEN } else { grade::R02 };
    let mut text = s.shared.map_or_else(|| nothing.to_owned(), shared);
    if s.shared.is_none() && by_library {
        text += "; without frames, a library may be what waits";
    }
    let mut v = says(grade, bare_pattern(b.blocking), text);
    if let Some(name) = awaited_collective(b) {
        let text = format!("the last op it waited for is {name}: a late peer shows here too");
        v.evidence.push(Evidence::new(RuleId::Collective, text));
    }
    if s.device_unknown {
        let text = "which device it was for is not recorded: it is taken to be the one whose work ended last before it returned";
        v.evidence.push(Evidence::new(RuleId::Device, text));
    }
    Some(v)
}

/// A D2H copy: the CPU gets a value, and only its use decides.
fn read(s: &Subject) -> Option<Verdict> {
    let b = s.bundle;
    let copy = b.copy.filter(|c| c.direction == Direction::DeviceToHost)?;
    let by_library = library::known(s).filter(|known| known.entries.len() == 1).map(|k| k.entries[0].id);
    let names: Vec<&str> = native::operators(&b.chain).collect();
    let by_operator = operators::find(&names).map(|(o, _)| o.pattern);
    let pattern = by_library.or(by_operator).unwrap_or_else(|| generic(b));
    let what = match b.method() {
        Some(method) => format!("through Tensor.{}", method_name(method)),
        None => "by a copy".to_owned(),
    };
    let fact = format!("{} reach the CPU {what}", crate::text::bytes(copy.bytes));
    let mut v = says(grade::R20, pattern, fact);
    let open = "whether the program needs them there, the trace does not tell";
    let thread = "it happens on autograd's thread, inside the backward pass";
    let backward = (b.role == ThreadRole::Autograd).then(|| Evidence::new(RuleId::Thread, thread));
    v.evidence.extend([Evidence::new(RuleId::Undecided, open)].into_iter().chain(backward));
    Some(v)
}

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

fn unattributed(s: &Subject) -> Verdict {
    let blocked = crate::text::duration(s.blocked_ns);
    let unseen = format!(
        "it blocked {blocked} although nothing that the export records was pending: a host function, another process, or lost events"
    );
    let text = match s.bundle.found {
        _ if s.bundle.copy_lost => {
            "a copy comes right before it, but the export does not hold which: a value may have been read or not"
        }
        Found::Unseen => &unseen,
        Found::Unknown => "the export records no GPU work of this process: what it waited for cannot be told",
        _ => "no copy, frame, chain or range tells what it was for",
    };
    says(grade::R21, None, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_asked_in_the_order_of_their_table() {
        let place = |id: RuleId| crate::rules::all().position(|rule| rule.id == id);
        assert!(RULES.is_sorted_by_key(|&(id, _)| place(id)));
    }
}
