//! Rules of the Python source: they decide where the trace's rule yields.

use super::{Role, Rule};
use crate::vocabulary::RuleId;

const fn rule(id: RuleId) -> Rule {
    Rule::of(id, Role::Source)
}

pub(super) const RULES: &[Rule] = &[
    rule(RuleId::S01)
        .looks_at("The expression around the read: the test of an if, while, comprehension, and, or, not.")
        .proves("The CPU must know the value before it can go on.")
        .example("if loss.item() < best:\n    best_epoch = epoch\n    save(model)"),
    rule(RuleId::S02)
        .looks_at("A branch whose body only raises, stops, warns or skips.")
        .proves("The CPU needs the value, but seldom: checking every N steps is enough.")
        .example("if not torch.isfinite(loss):\n    raise ValueError('loss diverged')"),
    rule(RuleId::S03)
        .looks_at("The test of an assert statement.")
        .proves("The CPU needs the value; `python -O` leaves the check out, `torch._assert_async` does not wait.")
        .example("assert (labels < classes).all()"),
    rule(RuleId::S04)
        .looks_at("The call that takes the value: print, a logger, a progress bar, a metrics recorder.")
        .proves("The program goes on the same whatever the value is: the read can wait or go.")
        .example("print(f'step {step}: {loss.item():.3f}')"),
    rule(RuleId::S05)
        .looks_at("Sums and lists that a loop fills, and their uses outside of it.")
        .proves("One read after the loop would do: collect on the GPU.")
        .example("for batch in loader:\n    total += loss(batch).item()\nprint(total / len(loader))"),
    rule(RuleId::S06)
        .looks_at("The names, containers, attributes, functions and callers that the value goes through, and where it ends; a tensor that bounds a slice.")
        .proves("One use that decides what the CPU does makes it needed; if all only show it, it is not; a use that is not understood leaves it open.")
        .example("value = loss.item()\nlr = base * min(1, value)    # decides: needed\nlog.info('loss %f', value)   # shows"),
    rule(RuleId::S07)
        .looks_at("Uses that combine it with tensors of the device, pick from one by it, or upload it again.")
        .proves("The CPU only carries it: the tensor could stay where it was.")
        .example("norm = x.norm().item()\nx = x / norm"),
    rule(RuleId::S08)
        .finer()
        .looks_at("torch.tensor, as_tensor and the like with a device argument.")
        .proves("It is built on the CPU and uploaded: no value of the GPU is read.")
        .example("weights = torch.tensor([0.1, 0.9], device='cuda')"),
    rule(RuleId::S09)
        .finer()
        .looks_at(".to(), .cuda(), copy_() and the direction that the trace or the device argument tells.")
        .proves("Towards the GPU, no value reaches the CPU.")
        .example("images = images.to('cuda')"),
    rule(RuleId::S10)
        .looks_at(".type() with a tensor class of the CPU.")
        .proves("The tensor goes to the CPU for nothing.")
        .example("labels = labels.type(torch.LongTensor)"),
    rule(RuleId::S11)
        .looks_at("Indices with masks, assignments through them, and operators such as unique, repeat_interleave, one_hot.")
        .proves("PyTorch needs the size on the CPU to allocate the output. If only totals of the elements are used, nothing else \
              needs it: they can be made at full shape. An assignment counts too, though no shape depends on it: torch.where does not.")
        .example("kept = boxes[scores > 0.5]"),
    rule(RuleId::S12)
        .looks_at("Subscripts with lists, numbers or CPU tensors, read or assigned.")
        .proves("No size depends on it: an index on the GPU does not wait.")
        .example("x[[0, 2, 5]] = 0.0"),
    rule(RuleId::S14)
        .looks_at("max, min, sorted over tensors of the device.")
        .proves("Python branches once a comparison: torch.maximum and torch.sort do not.")
        .example("highest = max(losses)    # tensors of the GPU"),
    rule(RuleId::S15)
        .looks_at("Statements around a synchronisation, or a read of which nothing is kept: clocks, event times, non-blocking copies whose target is read later.")
        .proves("Timing, a barrier that makes a buffer readable, or nothing: the GPU keeps its order by itself.")
        .example("torch.cuda.synchronize()\nseconds = time.perf_counter() - start"),
    rule(RuleId::S16)
        .looks_at("torch.cuda.empty_cache().")
        .proves("The allocator waits to give memory back to the driver.")
        .example("torch.cuda.empty_cache()"),
    rule(RuleId::S19)
        .looks_at("A call of the line inside which the wait happened, where no other rule knows it.")
        .proves("Nothing, unless the trace names the allocator.")
        .example("out = library.step(batch)"),
    rule(RuleId::S20)
        .looks_at("Where the tensor came from, through the program's functions and the recorded callers: uploads, batches of a DataLoader and host values, and only pure functions of them since; of a mask, only sizes and constants. Of a mask that the backward pass counts again, what the lines of the forward pass are told. Whether another line reads the same total, or logs what a guard checks; whether a constant settles the test; whether a loop takes it from a tensor that stays as it is, one element after the other.")
        .proves("The program needs the value, but not from the GPU, or not here: the host had all that it follows from, reads it anyway, or cannot be moved by it.")
        .example("lens = torch.tensor(sizes, device='cuda')\nlongest = lens.max().item()    # max(sizes)"),
    Rule::of(RuleId::S21, Role::Guard)
        .looks_at("Writes of the host to a pinned buffer that an H2D copy without a wait may still be reading.")
        .proves("Without the wait the copy could send what is written next, also where the GPU was done this time.")
        .example("sent.synchronize()\nbuffer.copy_(batch)\nx = buffer.to(\"cuda\", non_blocking=True)\nsent.record()"),
];
