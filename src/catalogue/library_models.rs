//! L06 to L18, L54, L56, L58, L95: generation, attention, mixture of experts, diffusers, PyG, flash-attn.

use super::{Category::*, Pattern, Strategy::*};
use crate::vocabulary::Kind::{self, *};

const BASE: Pattern = Pattern::BASE
    .op("aten::_local_scalar_dense")
    .trace("a copy of 1 to 8 bytes to pinned host memory, then cudaStreamSynchronize");

const GENERATE: &str = "transformers/generation/utils.py";
const FLASH: &str = "transformers/modeling_flash_attention_utils.py";
const MASKS: &str = "transformers/masking_utils.py";
const OLD_MASKS: &str = "transformers/modeling_attn_mask_utils.py";
const ROPE: &str = "transformers/modeling_rope_utils.py";
const PROCESSORS: &str = "transformers/generation/logits_process.py";

pub(super) const PATTERNS: &[Pattern] = &[
    BASE.of_kind("L06", "generate(): have all sequences finished?", ControlFlow)
        .triggers(&["unfinished_sequences.max() == 0", "model.generate(x)"])
        .trace("a reduction and a comparison, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize")
        .why("After each token the loop asks whether to stop.")
        .fix(Leave, "no option on CUDA: once a token")
        .sources("transformers 5.23.0 (its DeferredStopCheck is for MPS alone)")
        .site(&[(GENERATE, "__call__ _sample _beam_search _assisted_decoding")])
        .line("unfinished_sequences")
        .often("every token"),
    BASE.entry("L07", "generate(): finished flag over all ranks")
        .category(Distributed)
        .triggers(&["if this_peer_finished_flag.item() == 0.0"])
        .trace("an upload of 4 bytes, an NCCL all-reduce and a copy of 4 bytes back, each with cudaStreamSynchronize")
        .why("With synced_gpus every token asks all ranks whether they have finished. The upload needs no wait, the answer does.")
        .fix(Remove, "pass synced_gpus=False where ranks are independent")
        .before("out = model.generate(x, synced_gpus=True)")
        .after("out = model.generate(x, synced_gpus=False)")
        .mind("ZeRO-3 and FSDP need it: without it, ranks that finish early make the others hang.")
        .site(&[(GENERATE, "_has_unfinished_sequences")])
        .often("every token with ZeRO-3"),
    BASE.of_kind("L08", "generate(): streaming of tokens", CpuCompute)
        .category(DeviceMovement)
        .triggers(&["streamer.put(tokens.cpu())"])
        .op("aten::to")
        .trace("a pageable copy of 8 bytes per sequence, then cudaStreamSynchronize")
        .why("The tokens are turned into text at once.")
        .fix(Delay, "hand tokens to the streamer one step late")
        .before("streamer.put(tokens.cpu())")
        .after("if pending is not None:\n    copied.synchronize()  # copied = torch.cuda.Event()\n    streamer.put(pending)\npending = tokens.to('cpu', non_blocking=True)\ncopied.record()\n# after the loop\ncopied.synchronize()\nstreamer.put(pending)")
        .mind("Text appears one token later.")
        .site(&[
                (GENERATE, "_sample __call__ _assisted_decoding"),
                ("transformers/generation/streamers.py", "put"),
            ])
        .line("streamer.put")
        .often("every token"),
    BASE.of_kind("L09", "generate(): checks of the inputs", Kind::ErrorCheck)
        .triggers(&["torch.any(attention_mask[:, -1] == 0).item()"])
        .trace("a copy of 1 byte to pinned host memory, then cudaStreamSynchronize")
        .why("Padding and special tokens are looked at once, to warn.")
        .fix(Leave, "little to gain: once per call")
        .site(&[(GENERATE, "_prepare_attention_mask_for_generation _prepare_special_tokens generate")])
        .often("once per call"),
    BASE.of_kind("L10", "generate(): n-gram tables on the CPU", CpuCompute)
        .category(DeviceMovement)
        .triggers(&["prev_input_ids[idx].tolist()", "model.generate(x, encoder_no_repeat_ngram_size=3)"])
        .op("Tensor.tolist")
        .trace("per sequence: a pageable copy of 8 bytes per token, then cudaStreamSynchronize")
        .why("The n-grams seen so far are kept in Python dictionaries.")
        .fix(Remove, "use repetition_penalty instead of n-gram bans")
        .before("out = model.generate(x, encoder_no_repeat_ngram_size=3)")
        .after("out = model.generate(x, repetition_penalty=1.1)")
        .mind("Another rule: the text differs.")
        .versions("no_repeat_ngram_size too in older versions; 5.17 finds its n-grams on the GPU")
        .sources("transformers 5.17.0")
        .site(&[(PROCESSORS, "_get_ngrams _get_generated_ngrams _calc_banned_ngram_tokens")])
        .often("every token and sequence"),
    BASE.of_kind("L11", "flash attention: unpadding by the attention mask", DynamicShape)
        .triggers(&["torch.nonzero(attention_mask.flatten())", "seqlens_in_batch.max().item()"])
        .op("aten::nonzero, aten::item")
        .trace("the count of nonzero (4 bytes) and a copy of 4 bytes, each with cudaStreamSynchronize")
        .why("Padding is cut out by the mask, and the longest sequence is read, again in every layer.")
        .fix(Coalesce, "use a padding-free collator that gives cu_seq_lens")
        .before("collator = DataCollatorWithPadding(tokenizer)")
        .after("collator = DataCollatorWithFlattening(return_flash_attn_kwargs=True)")
        .mind("The batch becomes one long row; position_ids must restart per sequence.")
        .sources("VeOmni#136, transformers 5.23.0")
        .site(&[(FLASH, "_get_unpad_data _unpad_input _upad_input")])
        .often("every layer with padding"),
    BASE.of_kind("L12", "flash attention: is the sequence packed?", ControlFlow)
        .triggers(&["_is_packed_sequence(position_ids, batch_size)"])
        .trace("a reduction, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize")
        .why("position_ids are inspected in every layer to choose a kernel.")
        .fix(SyncFreeApi, "pass cu_seq_lens and max_length arguments")
        .before("out = model(input_ids=ids, position_ids=pos)")
        .after("out = model(input_ids=ids, position_ids=pos, cu_seq_lens_q=cu, cu_seq_lens_k=cu,\n            max_length_q=longest, max_length_k=longest)")
        .mind("longest must be a Python int.")
        .site(&[(FLASH, "_is_packed_sequence _flash_attention_forward")])
        .often("every layer with batch size 1"),
    BASE.of_kind("L13", "flash attention: lengths from position_ids", DynamicShape)
        .triggers(&["prepare_fa_kwargs_from_position_ids(position_ids)"])
        .op("aten::nonzero")
        .trace("the count of nonzero (4 bytes), an upload of 4 bytes and a copy of 4 bytes back, each with cudaStreamSynchronize")
        .why("Starts of sequences are searched in position_ids in every layer.")
        .fix(Coalesce, "compute cu_seq_lens once per batch on the host")
        .before("out = model(input_ids=ids, position_ids=pos)")
        .after("out = model(input_ids=ids, position_ids=pos, cu_seq_lens_q=cu, cu_seq_lens_k=cu,\n            max_length_q=longest, max_length_k=longest)")
        .mind("longest must be a Python int.")
        .site(&[(FLASH, "prepare_fa_kwargs_from_position_ids _prepare_from_posids prepare_fa2_from_position_ids")])
        .often("every layer"),
    BASE.of_kind("L14", "attention masks: can the mask be skipped?", ControlFlow)
        .triggers(&[
            "attention_mask.all()",
            "(packed_sequence_mask[:, -1] == 0).all()",
            "torch.all(attention_mask == 1)",
        ])
        .trace("a reduction, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize")
        .why("If nothing is masked a faster path is taken, so the mask is read once per forward.")
        .fix(SyncFreeApi, "pass attention_mask=None")
        .before("out = model(input_ids=ids, attention_mask=torch.ones_like(ids))")
        .after("out = model(input_ids=ids, attention_mask=None)")
        .mind("Only for batches without padding. Without a cache (use_cache=False) position_ids are looked at instead, unless the mask is 4-D.")
        .or(&["a ready 4-D mask"])
        .site(&[
                (MASKS, "find_packed_sequence_indices _ignore_causal_mask_sdpa _ignore_bidirectional_mask_sdpa flash_attention_mask flex_attention_mask"),
                (OLD_MASKS, "_ignore_causal_mask_sdpa _prepare_4d_attention_mask_for_sdpa _prepare_4d_causal_attention_mask_for_sdpa"),
            ])
        .often("every forward"),
    BASE.of_kind("L15", "rotary embeddings: dynamic scaling", ControlFlow)
        .triggers(&["if seq_len > max_seq_len_cached"])
        .trace("a reduction, a copy of 1 byte to pinned host memory and cudaStreamSynchronize per comparison")
        .why("The longest position decides whether frequencies are recomputed.")
        .fix(SyncFreeApi, "use a fixed rope_type (linear, yarn, llama3)")
        .before("config.rope_parameters.update(rope_type='dynamic', factor=4.0)")
        .after("config.rope_parameters.update(rope_type='linear', factor=4.0)")
        .mind("The model must have been trained for that scaling: results differ. Before transformers 5: rope_scaling.")
        .versions("longrope too before transformers 5.23: upgrade")
        .site(&[(ROPE, "dynamic_frequency_update longrope_frequency_update wrapper")])
        .often("every forward"),
    BASE.of_kind("L16", "mixture of experts: loop over the experts hit", DynamicShape)
        .triggers(&["for expert_idx in expert_hit", "torch.where(expert_mask[expert_idx])"])
        .op("aten::nonzero, aten::item, aten::where")
        .trace("the count of nonzero (4 bytes), then five waits per expert: a copy of 1 byte, three of 8 bytes and another count")
        .why("Which experts got tokens, and how many, is read to the CPU in every layer.")
        .fix(SyncFreeApi, "use the grouped_mm experts implementation")
        .before("model = AutoModelForCausalLM.from_pretrained(name, experts_implementation='eager')")
        .after("model = AutoModelForCausalLM.from_pretrained(name, experts_implementation='grouped_mm')")
        .mind("Needs a recent transformers, of which it is the default, and a GPU that torch's grouped matrix multiplication supports.")
        .site(&[
                ("models/mixtral/modeling_mixtral.py", "forward"),
                ("models/qwen3_moe/modeling_qwen3_moe.py", "forward"),
                ("models/qwen2_moe/modeling_qwen2_moe.py", "forward"),
                ("models/deepseek_v3/modeling_deepseek_v3.py", "forward"),
                ("models/olmoe/modeling_olmoe.py", "forward"),
            ])
        .package("transformers")
        .line("expert")
        .often("every mixture-of-experts layer"),
    BASE.of_kind("L17", "mixture of experts: offsets as a list", DynamicShape)
        .triggers(&["for i, end in enumerate(offs.tolist())"])
        .op("Tensor.tolist")
        .trace("a pageable copy of 8 bytes per expert, then cudaStreamSynchronize: one wait for all experts")
        .why("The fallback without grouped kernels slices by expert, so it needs the offsets.")
        .fix(SyncFreeApi, "run on a GPU and PyTorch with grouped matrix products")
        .before("for i, end in enumerate(offs.tolist()):\n    out[start:end] = x[start:end] @ w[i]\n    start = end")
        .after("out = torch._grouped_mm(x, w, offs=offs)")
        .mind("A private function with its own limits on dtype and alignment.")
        .site(&[("transformers/integrations/moe.py", "")])
        .often("every mixture-of-experts layer"),
    BASE.of_kind("L18", "vision-language models: split by lengths", DynamicShape)
        .triggers(&["torch.split(tensor, lengths.tolist(), dim=2)"])
        .op("Tensor.tolist")
        .trace("a pageable copy of the lengths, then cudaStreamSynchronize")
        .why("Attention runs per image, so the lengths must be Python ints, again in every layer.")
        .fix(Coalesce, "use flash attention, which takes cu_seqlens as a tensor")
        .before("model = AutoModel.from_pretrained(name)")
        .after("model = AutoModel.from_pretrained(name, attn_implementation='flash_attention_2')")
        .mind("Needs flash-attn and half precision.")
        .site(&[
                ("models/qwen2_5_vl/modeling_qwen2_5_vl.py", "forward"),
                ("models/qwen2_vl/modeling_qwen2_vl.py", "forward"),
                ("models/qwen3_vl/modeling_qwen3_vl.py", "forward"),
            ])
        .package("transformers")
        .line("lengths.tolist()")
        .often("every vision layer"),
    BASE.of_kind("L54", "diffusers: index of a timestep", RoundTrip)
        .triggers(&["(schedule_timesteps == timestep).nonzero()"])
        .op("aten::nonzero, aten::item")
        .trace("the count of nonzero (4 bytes) and a copy of 8 bytes, each with cudaStreamSynchronize")
        .why("The scheduler searches the index of the step, which the loop knows.")
        .fix(SyncFreeApi, "call scheduler.set_begin_index(0)")
        .before("scheduler.set_timesteps(50, device='cuda')")
        .after("scheduler.set_timesteps(50, device='cuda')\nscheduler.set_begin_index(0)")
        .mind("In a sampling loop of one's own, after set_timesteps; the index must be the true first step. Never where add_noise() serves training: all samples would get the noise of that step. A pipeline sets it anew.")
        .site(&[("diffusers/schedulers/", "index_for_timestep _init_step_index")])
        .often("first step of a call"),
    BASE.of_kind("L56", "PyG: sizes from the largest index", HostKnown)
        .category(DynamicShapes)
        .triggers(&["int(index.max()) + 1", "global_mean_pool(x, batch)"])
        .trace("a reduction, a copy of 8 bytes to pinned host memory, then cudaStreamSynchronize")
        .why("Without a size argument the number of nodes or graphs is read from the index tensor; who made the batch has it.")
        .fix(SyncFreeApi, "pass size=")
        .before("out = global_mean_pool(x, batch)")
        .after("out = global_mean_pool(x, batch, size=data.num_graphs)")
        .mind("The value must be that of the batch. max_num_nodes of to_dense_adj is checked by reads of its own; dense_to_sparse takes no size.")
        .or(&["as the function takes it: dim_size, batch_size, max_num_nodes, num_nodes, num_classes, num_groups"])
        .site(&[
                ("torch_geometric/utils/_scatter.py", "scatter group_argsort"),
                ("torch_geometric/utils/_to_dense_batch.py", "to_dense_batch"),
                ("torch_geometric/utils/_to_dense_adj.py", "to_dense_adj"),
                ("torch_geometric/utils/to_dense_batch.py", "to_dense_batch"),
                ("torch_geometric/utils/to_dense_adj.py", "to_dense_adj"),
                ("torch_geometric/utils/_one_hot.py", "one_hot"),
                ("torch_geometric/utils/num_nodes.py", "maybe_num_nodes"),
                ("torch_geometric/nn/aggr/base.py", "__call__"),
                ("torch_geometric/nn/pool/glob.py", ""),
                ("torch_geometric/nn/pool/", "avg_pool_x max_pool_x"),
                ("torch_geometric/utils/sparse.py", ""),
                ("torch_geometric/utils/mask.py", "index_to_mask"),
            ])
        .often("every layer"),
    BASE.of_kind("L95", "tokenizers: tokens become text", CpuCompute)
        .category(DeviceMovement)
        .triggers(&["tokenizer.batch_decode(tokens)", "tokenizer.decode(tokens)"])
        .op("aten::_to_copy")
        .trace("a copy of all tokens to the host, then cudaStreamSynchronize")
        .why("Text is made on the CPU, of all tokens.")
        .fix(Leave, "nothing to do: the text needs the tokens")
        .sources("transformers 5.17.0")
        .site(&[("transformers/tokenization_utils_base.py", "batch_decode decode")])
        .often("every text"),
    BASE.of_kind("L58", "flash-attn: unpad_input()", DynamicShape)
        .triggers(&["unpad_input(x, mask)"])
        .op("aten::nonzero, aten::item")
        .trace("the count of nonzero (4 bytes) and a copy of 4 bytes, each with cudaStreamSynchronize")
        .why("Padding is cut out by the mask, and the longest sequence is read.")
        .fix(Coalesce, "unpad once per batch; reuse the indices in all layers")
        .before("for layer in layers:\n    x = layer(x, mask)")
        .after("x, idx, cu, longest, _ = unpad_input(x, mask)\nfor layer in layers:\n    x = layer(x, cu, longest)\nx = pad_input(x, idx, batch, seq)")
        .mind("Layers must accept unpadded input.")
        .sources("flash-attn 2.8.3")
        .site(&[("flash_attn/bert_padding.py", "unpad_input unpad_input_for_concatenated_sequences")])
        .often("every layer or batch"),
];
