//! L06 to L18, L54 to L56, L58: generation, attention, mixture of experts, diffusers, PyG, flash-attn.

use super::{Category::{self, *}, Pattern, Strategy::*, fix, site};
use crate::vocabulary::Kind::{self, *};

const BASE: Pattern = Pattern {
    op: "aten::_local_scalar_dense",
    trace: "a copy of 1 to 8 bytes to pinned host memory, then cudaStreamSynchronize",
    ..Pattern::BASE
};

const GENERATE: &str = "transformers/generation/utils.py";
const FLASH: &str = "transformers/modeling_flash_attention_utils.py";
const MASKS: &str = "transformers/masking_utils.py";
const OLD_MASKS: &str = "transformers/modeling_attn_mask_utils.py";
const ROPE: &str = "transformers/modeling_rope_utils.py";
const PROCESSORS: &str = "transformers/generation/logits_process.py";

pub(super) const PATTERNS: &[Pattern] = &[
    Pattern {
        id: "L06",
        title: "generate(): have all sequences finished?",
        triggers: &["unfinished_sequences.max() == 0", "model.generate(x)"],
        trace: "a reduction and a comparison, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize",
        kind: Some(ControlFlow),
        why: "After each token the loop asks whether to stop.",
        fix: fix(
            Delay,
            "read the stop flag one token late, or fix the length",
            "out = model.generate(x, max_new_tokens=64)",
            "out = model.generate(x, min_new_tokens=64, max_new_tokens=64,\n                     cache_implementation='static')",
            "Fixed lengths compute tokens after the end; the loop still reads its flag, but never early.",
        ),
        sources: "transformers 5.23 (DeferredStopCheck)",
        library: site(
            "transformers",
            &[(GENERATE, "__call__"), (GENERATE, "_sample"), (GENERATE, "_beam_search"), (GENERATE, "_assisted_decoding")],
            "unfinished_sequences",
            "every token",
        ),
        ..BASE
    },
    Pattern {
        id: "L07",
        category: Distributed,
        title: "generate(): finished flag over all ranks",
        triggers: &["if this_peer_finished_flag.item() == 0.0"],
        trace: "an upload of 4 bytes, an NCCL all-reduce and a copy of 4 bytes back, each with cudaStreamSynchronize",
        why: "With synced_gpus every token asks all ranks whether they have finished. The upload needs no wait, the answer does.",
        fix: fix(
            Remove,
            "pass synced_gpus=False where ranks are independent",
            "out = model.generate(x, synced_gpus=True)",
            "out = model.generate(x, synced_gpus=False)",
            "ZeRO-3 and FSDP need it: without it, ranks that finish early make the others hang.",
        ),
        sources: "transformers 5.23",
        library: site("transformers", &[(GENERATE, "_has_unfinished_sequences")], "", "every token with ZeRO-3"),
        ..BASE
    },
    Pattern {
        id: "L08",
        category: DeviceMovement,
        title: "generate(): streaming of tokens",
        triggers: &["streamer.put(tokens.cpu())"],
        op: "aten::to",
        trace: "a pageable copy of 8 bytes per sequence, then cudaStreamSynchronize",
        kind: Some(CpuCompute),
        why: "The tokens are turned into text at once.",
        fix: fix(
            Delay,
            "hand tokens to the streamer one step late",
            "streamer.put(tokens.cpu())",
            "if pending is not None:\n    copied.synchronize()\n    streamer.put(pending)\npending = tokens.to('cpu', non_blocking=True)\ncopied.record()  # copied = torch.cuda.Event()",
            "Text appears one token later. Wait for the event before reading.",
        ),
        sources: "transformers 5.23",
        library: site(
            "transformers",
            &[
                (GENERATE, "_sample"),
                (GENERATE, "__call__"),
                (GENERATE, "_assisted_decoding"),
                ("transformers/generation/streamers.py", "put"),
            ],
            "streamer.put",
            "every token",
        ),
        ..BASE
    },
    Pattern {
        id: "L09",
        category: Category::ErrorCheck,
        title: "generate(): checks of the inputs",
        triggers: &["torch.any(attention_mask[:, -1] == 0).item()"],
        trace: "a copy of 1 byte to pinned host memory, then cudaStreamSynchronize",
        kind: Some(Kind::ErrorCheck),
        why: "Padding and special tokens are looked at once, to warn.",
        fix: fix(
            Leave,
            "little to gain: once per call; pass attention_mask",
            "out = model.generate(ids)",
            "out = model.generate(ids, attention_mask=mask, pad_token_id=tokenizer.pad_token_id)",
            "",
        ),
        sources: "transformers 5.23",
        library: site(
            "transformers",
            &[
                (GENERATE, "_prepare_attention_mask_for_generation"),
                (GENERATE, "_prepare_special_tokens"),
                (GENERATE, "generate"),
            ],
            "",
            "once per call",
        ),
        ..BASE
    },
    Pattern {
        id: "L10",
        category: DeviceMovement,
        title: "generate(): n-gram tables on the CPU",
        triggers: &["prev_input_ids[idx].tolist()", "model.generate(x, no_repeat_ngram_size=3)"],
        op: "Tensor.tolist",
        trace: "per sequence: a pageable copy of 8 bytes per token, then cudaStreamSynchronize",
        kind: Some(CpuCompute),
        why: "The n-grams seen so far are kept in Python dictionaries.",
        fix: fix(
            Remove,
            "use repetition_penalty instead of n-gram bans",
            "out = model.generate(x, no_repeat_ngram_size=3)",
            "out = model.generate(x, repetition_penalty=1.1)",
            "Another rule: the text differs.",
        ),
        sources: "transformers 5.23",
        library: site(
            "transformers",
            &[(PROCESSORS, "_get_ngrams"), (PROCESSORS, "_get_generated_ngrams"), (PROCESSORS, "_calc_banned_ngram_tokens")],
            "",
            "every token and sequence",
        ),
        ..BASE
    },
];
