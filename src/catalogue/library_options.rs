//! L105 to L136: options of libraries for places whose lines wait in several ways, and entries for one caller of a place.
//!
//! Each option was read in the source of the version that the entry names.

use super::library_knobs::entry;
use super::{Case, LOGGED, Pattern, Strategy::*};
use crate::vocabulary::{Kind, PatternId, PatternId::*};

/// An entry for code whose waits are of several kinds: the verdict comes from the line, the advice from here.
const fn option(id: PatternId, title: &'static str) -> Pattern {
    LOGGED
        .by_use()
        .op("aten::is_nonzero, aten::item, aten::nonzero, aten::to")
        .trace("copies of values or sizes, each with cudaStreamSynchronize")
        .entry(id, title)
}

const EARLY_STOPPING: &str = "lightning/pytorch/callbacks/early_stopping.py";
const CHECKPOINT: &str = "lightning/pytorch/callbacks/model_checkpoint.py";
const TRAINER: &str = "transformers/trainer.py";
const MASKS: &str = "transformers/masking_utils.py";
const CURVES: &str = "torchmetrics/functional/classification/";

pub(super) const PATTERNS: &[Pattern] = &[
    entry(L105, "Lightning: EarlyStopping's message", Kind::Logging)
        .triggers(&["EarlyStopping(monitor='val_loss')"])
        .why("The message of an improvement is built at every check, even with verbose=False.")
        .fix(Remove, "a subclass whose _improvement_message() returns ''")
        .before("cb = EarlyStopping('val_loss')")
        .after("class Quiet(EarlyStopping):\n    def _improvement_message(self, current):\n        return ''\ncb = Quiet('val_loss')")
        .mind("The method is Lightning's own and may be renamed. Nothing tells of improvements any more.")
        .or(&["fewer checks: a larger val_check_interval or check_val_every_n_epoch"])
        .at(EARLY_STOPPING, "_improvement_message")
        .often("every check that finds a better value"),
    entry(L106, "Lightning: EarlyStopping at the end of epochs", Kind::ControlFlow)
        .triggers(&["EarlyStopping('val_loss', check_on_train_epoch_end=True)"])
        .why("The CPU decides whether training stops, here at the end of epochs already.")
        .fix(Coalesce, "check_finite=False: one read a check, not two")
        .before("cb = EarlyStopping('val_loss')")
        .after("cb = EarlyStopping('val_loss', check_finite=False)")
        .mind("A monitored value that is NaN or infinite then stops training only when patience runs out.")
        .at(EARLY_STOPPING, "on_train_epoch_end")
        .often("every epoch"),
    entry(L107, "Lightning: a checkpoint is written", Kind::CpuCompute)
        .triggers(&["ModelCheckpoint(every_n_epochs=1)", "trainer.save_checkpoint(path)"])
        .why("The bytes go to a file, so the CPU needs them. The callback decides how often.")
        .fix(Delay, "ModelCheckpoint: raise every_n_epochs, or lower save_top_k")
        .before("cb = ModelCheckpoint(monitor='val_loss', every_n_epochs=1)")
        .after("cb = ModelCheckpoint(monitor='val_loss', every_n_epochs=5)")
        .mind("More is lost when a run breaks off.")
        .or(&[
            "save_weights_only=True leaves the optimizer's state out: such a run cannot be resumed",
            "Trainer(plugins=[AsyncCheckpointIO()]) clones on the GPU and copies on another thread",
        ])
        .at(CHECKPOINT, "_save_checkpoint")
        .often("every checkpoint"),
    entry(L108, "Trainer: a checkpoint is written", Kind::CpuCompute)
        .triggers(&["TrainingArguments('out', save_steps=500)", "trainer.save_model(path)"])
        .why("The bytes go to files, so the CPU needs them. The arguments decide how often.")
        .fix(Delay, "raise save_steps, or save_strategy='epoch'")
        .before("args = TrainingArguments(output_dir='out', save_steps=50)")
        .after("args = TrainingArguments(output_dir='out', save_steps=1000)")
        .mind("More is lost when a run breaks off. load_best_model_at_end needs save_steps that are a multiple of eval_steps.")
        .or(&["save_only_model=True leaves the optimizer's state out: such a run cannot be resumed"])
        .at(TRAINER, "_save_checkpoint")
        .often("every save_steps"),
    entry(L109, "Lightning: LearningRateMonitor", Kind::Upload)
        .triggers(&["LearningRateMonitor()"])
        .why("Each rate is uploaded, as one tensor more among the callback's metrics; the logger gets the number itself.")
        .fix(Remove, "remove LearningRateMonitor, or logging_interval='epoch'")
        .before("trainer = Trainer(callbacks=[LearningRateMonitor()])")
        .after("trainer = Trainer(callbacks=[LearningRateMonitor(logging_interval='epoch')])")
        .mind("Rates within an epoch are then missing from the log. Callbacks that monitor the rate need it.")
        .or(&["self.logger.log_metrics({'lr': lr}, step) takes the number and uploads nothing"])
        .at("lightning/pytorch/callbacks/lr_monitor.py", "_extract_stats <dictcomp>")
        .often("every step and rate; every epoch with logging_interval='epoch'"),
    entry(L110, "Lightning: a number given to self.log()", Kind::Upload)
        .triggers(&["self.log('loss', loss.item())", "self.log('lr', 1e-3)"])
        .why("self.log() keeps tensors on the module's device: a number is uploaded.")
        .fix(Remove, "log the tensor itself: self.log('loss', loss)")
        .before("self.log('loss', loss.item())")
        .after("self.log('loss', loss)")
        .mind("A number that only the CPU has is uploaded all the same.")
        .or(&["a number of the CPU: self.logger.log_metrics({'lr': lr}, step) uploads nothing"])
        .at("lightning/pytorch/core/module.py", "__to_tensor _LightningModule__to_tensor")
        .often("every call with a number"),
    option(L111, "torchmetrics: exact curves")
        .triggers(&["MulticlassAUROC(10)", "BinaryAveragePrecision()", "BinaryROC()"])
        .why("Without thresholds= a curve has a point for each score: their number is read, and empty classes are looked for.")
        .fix(SyncFreeApi, "thresholds=100: the curve has fixed points")
        .before("auroc = MulticlassAUROC(num_classes=10)")
        .after("auroc = MulticlassAUROC(num_classes=10, thresholds=100)")
        .mind("The value is an approximation. update() then counts at once instead of keeping all scores, and waits in bincount for small batches (up to 50,000 scores in binary tasks).")
        .or(&["the same curve, without the GPU: compute_on_cpu=True"])
        .versions("thresholds= of the metrics by task: torchmetrics 0.10 and later")
        .at("torchmetrics/functional/classification/precision_recall_curve.py", "_binary_clf_curve _binary_precision_recall_curve_compute _multiclass_precision_recall_curve_compute")
        .at("torchmetrics/functional/classification/roc.py", "_binary_roc_compute _multiclass_roc_compute _multilabel_roc_compute")
        .at("torchmetrics/functional/classification/average_precision.py", "_binary_average_precision_compute")
        .at("torchmetrics/functional/classification/auroc.py", "_binary_auroc_compute")
        .often("every compute, for each class"),
    entry(L112, "torchmetrics: classes without a value", Kind::ControlFlow)
        .triggers(&["MulticlassAUROC(10)(preds, target)", "MulticlassAveragePrecision(10)"])
        .why("Classes whose value is NaN are looked for, to warn of them, and cut out of the mean by a mask.")
        .fix(SyncFreeApi, "average='none', then .nanmean() on the GPU")
        .before("auroc = MulticlassAUROC(num_classes=10)\nvalue = auroc(preds, target)")
        .after("auroc = MulticlassAUROC(num_classes=10, average='none')\nvalue = auroc(preds, target).nanmean()")
        .mind("Nothing warns of classes that are missing.")
        .or(&["update() in the loop, compute() once after it"])
        .at("torchmetrics/functional/classification/auroc.py", "_reduce_auroc")
        .at("torchmetrics/functional/classification/average_precision.py", "_reduce_average_precision")
        .often("every compute"),
    option(L113, "torchmetrics: retrieval, query by query")
        .triggers(&["RetrievalMRR()(preds, target, indexes)", "RetrievalMAP()"])
        .why("compute() loops over the queries in Python and asks of each whether it has a positive target.")
        .fix(Offload, "update() with CPU tensors: no query waits")
        .before("metric.update(preds, target, indexes)")
        .after("metric.update(preds.cpu(), target.cpu(), indexes.cpu())")
        .mind("update() then waits for three copies. The value comes out on the CPU.")
        .or(&[
            "RetrievalMRR(compute_on_cpu=True) moves the tensors itself; update() still checks its targets on the GPU",
            "metric.allow_non_binary_target = True leaves out that check of update()",
        ])
        .at("torchmetrics/retrieval/", "")
        .at("torchmetrics/functional/retrieval/", "")
        .at("torchmetrics/utilities/checks.py", "_check_retrieval_target_and_prediction_types _check_retrieval_inputs _check_retrieval_functional_inputs")
        .at("torchmetrics/utilities/data.py", "_flexible_bincount")
        .often("every update; every query of a compute"),
    entry(L114, "GPyTorch: comparison with the training inputs", Kind::ErrorCheck)
        .triggers(&["model(train_x)", "torch.equal(train_input, input)"])
        .op("aten::equal")
        .why("In training the inputs must be the training inputs, in evaluation they should not: each call compares. On by default.")
        .fix(Remove, "gpytorch.settings.debug(False)")
        .before("loss = -mll(model(train_x), train_y)")
        .after("with gpytorch.settings.debug(False):\n    loss = -mll(model(train_x), train_y)")
        .mind("Nothing tells of wrong inputs any more.")
        .at("gpytorch/models/exact_gp.py", "__call__ <genexpr>")
        .line("torch.equal(train_input")
        .often("every call of the model"),
    entry(L115, "linear_operator: did the Cholesky factorisation succeed?", Kind::ControlFlow)
        .triggers(&["psd_safe_cholesky(A)", "gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)"])
        .why("A factorisation that failed is tried again with jitter on the diagonal, so the CPU reads whether it did.")
        .fix(Remove, "linear_operator.settings.trace_mode(True)")
        .before("loss = -mll(model(x), y)")
        .after("with linear_operator.settings.trace_mode(True):\n    loss = -mll(model(x), y)")
        .mind("Only where no factorisation fails. A matrix that is not positive definite then gives a wrong factor without a word: keep its diagonal noise well above zero. The setting is meant for torch.jit.trace and evaluates lazy tensors: measure.")
        .or(&["linear_operator.settings.cholesky_jitter: a larger one spares the second attempt"])
        .at("linear_operator/utils/cholesky.py", "_psd_safe_cholesky")
        .often("every factorisation"),
    option(L116, "linear_operator: conjugate gradients")
        .triggers(&["linear_cg(matmul, rhs)", "gpytorch.settings.max_cholesky_size(100)"])
        .why("From the tenth iteration on each asks whether the residual is small enough.")
        .fix(Delay, "raise gpytorch.settings.cg_tolerance or max_cholesky_size")
        .before("loss = -mll(model(x), y)")
        .after("with gpytorch.settings.max_cholesky_size(4000):  # where n x n fits in memory\n    loss = -mll(model(x), y)")
        .mind("Above max_cholesky_size (800) a system is solved by iteration. A larger cg_tolerance or a smaller max_cg_iterations ends it earlier, with a less exact solution.")
        .at("linear_operator/utils/linear_cg.py", "linear_cg")
        .at("linear_operator/utils/minres.py", "minres")
        .often("every iteration of a solve"),
    option(L117, "linear_operator: log determinant by Lanczos")
        .triggers(&["inv_quad_logdet(linear_op, rhs, logdet=True)", "lanczos_tridiag_to_diag(t_mat)"])
        .why("Small matrices of the log determinant are tested for NaN and decomposed on the CPU.")
        .fix(Remove, "linear_operator.settings.skip_logdet_forward(True)")
        .before("loss = -mll(model(x), y)")
        .after("with linear_operator.settings.skip_logdet_forward(True):\n    loss = -mll(model(x), y)")
        .mind("The value of the loss lacks its log determinant, its gradients do not: for SGD and Adam, not for L-BFGS or to compare models.")
        .at("linear_operator/functions/_inv_quad_logdet.py", "forward")
        .at("linear_operator/utils/lanczos.py", "lanczos_tridiag_to_diag")
        .often("every loss above max_cholesky_size"),
    option(L118, "GPyTorch: checks of inputs and variances")
        .triggers(&["kernel.covar_dist(x1, x2)", "prediction.variance"])
        .why("A kernel asks whether its two inputs are one, a distribution whether a variance is too small.")
        .fix(Leave, "no option: once for each kernel or variance")
        .or(&["one variance for all that needs it: variance = prediction.variance"])
        .at("gpytorch/kernels/kernel.py", "covar_dist")
        .at("gpytorch/distributions/multivariate_normal.py", "variance")
        .often("every kernel; every variance"),
    entry(L119, "attention masks inside generate()", Kind::ControlFlow)
        .triggers(&["model.generate(ids, attention_mask=mask)"])
        .why("If nothing is masked a faster path is taken, so the mask is read once a token. Without a mask generate() makes one.")
        .fix(SyncFreeApi, "cache_implementation='static': read at the prompt only")
        .before("out = model.generate(ids, max_new_tokens=64)")
        .after("out = model.generate(ids, max_new_tokens=64, cache_implementation='static')")
        .mind("The cache is as long as the longest text from the start, and the model is compiled at the first call (disable_compile=True: not). attention_mask=None changes nothing here.")
        .sources("transformers#43088, transformers 5.17.0")
        .at(MASKS, "create_masks_for_generate")
        .often("every token"),
    entry(L120, "attention masks: are sequences packed?", Kind::ControlFlow)
        .triggers(&["find_packed_sequence_indices(position_ids)", "(packed_sequence_mask[:, -1] == 0).all()"])
        .trace("a reduction, a copy of 1 byte to pinned host memory, then cudaStreamSynchronize")
        .why("Without a mask and without a cache, position_ids are searched for starts of sequences.")
        .fix(SyncFreeApi, "use_cache=True, where its memory fits")
        .before("out = model(input_ids=ids, use_cache=False)")
        .after("out = model(input_ids=ids, use_cache=True)")
        .mind("Each layer copies its keys and values into the cache, and gradient checkpointing turns it off. A 2-D attention_mask is read in the place of position_ids. Packed sequences need the search.")
        .or(&["a ready 4-D mask: it is used as it is, without the kernel of flash attention", "Trainer: TrainingArguments(use_cache=True)"])
        .sources("transformers 5.17.0")
        .at(MASKS, "find_packed_sequence_indices")
        .often("every forward"),
    entry(L121, "Trainer: batches moved to the GPU", Kind::Upload)
        .triggers(&["Trainer(model, args, train_dataset=ds).train()"])
        .why("accelerate moves the Trainer's batches with blocking copies unless asked otherwise.")
        .fix(NonBlocking, "accelerator_config={'non_blocking': True}")
        .before("args = TrainingArguments(output_dir='out')")
        .after("args = TrainingArguments(output_dir='out', accelerator_config={'non_blocking': True})")
        .mind("Only from pinned memory: leave dataloader_pin_memory=True, its default. Do not overwrite the CPU batch before the copy has run.")
        .versions("transformers 4.41 and later, accelerate 0.30 and later")
        .sources("transformers 5.17.0, accelerate 1.15.0")
        .at(TRAINER, "get_batch_samples _prepare_input")
        .often("every batch"),
    entry(L122, "Trainer: sizes of predictions over ranks", Kind::DynamicShape)
        .triggers(&["trainer.evaluate()", "trainer.predict(ds)"])
        .why("Logits and labels of each batch are padded to the longest of all ranks, on one rank too.")
        .fix(Remove, "prediction_loss_only=True where only the loss counts")
        .before("args = TrainingArguments(output_dir='out')")
        .after("args = TrainingArguments(output_dir='out', prediction_loss_only=True)")
        .mind("compute_metrics is then not called, predict() gives no predictions, and metric_for_best_model can only be the loss.")
        .sources("transformers 5.17.0, accelerate 1.15.0")
        .at(TRAINER, "evaluation_loop")
        .line("pad_across_processes")
        .often("every batch of an evaluation"),
    option(L123, "accelerate: was the optimizer step skipped?")
        .triggers(&["accelerator.prepare(optimizer)", "scale_after = self.scaler.get_scale()"])
        .why("Old versions compare the scale before and after each step to see whether it was skipped.")
        .fix(Remove, "upgrade accelerate: 0.22 counts the optimizer's calls")
        .before("# accelerate before 0.22\noptimizer.step()")
        .after("# accelerate 0.22 or later\noptimizer.step()")
        .mind("GradScaler.step() itself still reads whether a gradient overflowed.")
        .or(&["train in bfloat16, without a scaler"])
        .sources("accelerate#1714, accelerate#1720, accelerate 1.15.0")
        .at("accelerate/optimizer.py", "step")
        .often("every optimizer step"),
    entry(L124, "generate(): checks of forced and suppressed tokens", Kind::ErrorCheck)
        .triggers(&["model.generate(ids, forced_eos_token_id=2)", "model.generate(ids, min_new_tokens=10)"])
        .why("Processors that force or forbid tokens upload their ids and test them when they are made.")
        .fix(Remove, "leave out forced_eos_token_id, min_new_tokens if not needed")
        .before("out = model.generate(ids, forced_eos_token_id=2)")
        .after("out = model.generate(ids)")
        .mind("The text may then end elsewhere. It is paid once a call.")
        .sources("transformers 5.17.0")
        .at("transformers/generation/logits_process.py", "__init__")
        .often("once per call"),
    entry(L125, "sentence-transformers: embeddings to the host", Kind::CpuCompute)
        .triggers(&["model.encode(sentences)"])
        .why("Embeddings become NumPy arrays, batch by batch.")
        .fix(SyncFreeApi, "convert_to_tensor=True keeps them on the GPU")
        .before("embeddings = model.encode(sentences)")
        .after("embeddings = model.encode(sentences, convert_to_tensor=True)")
        .mind("All embeddings must fit in GPU memory; code that takes arrays needs .cpu() once at the end.")
        .sources("sentence-transformers 5.2")
        .at("sentence_transformers/SentenceTransformer.py", "encode")
        .line("embeddings.cpu()")
        .often("every batch"),
    entry(L126, "PyG: largest graph of a batch", Kind::DynamicShape)
        .triggers(&["to_dense_batch(x, batch)"])
        .trace("a reduction, a copy of 8 bytes to pinned host memory, then cudaStreamSynchronize")
        .why("Without max_num_nodes= the padded size is the largest graph of the batch, which is read.")
        .fix(SyncFreeApi, "max_num_nodes= a bound of the data set")
        .before("dense, mask = to_dense_batch(x, batch, batch_size=data.num_graphs)")
        .after("dense, mask = to_dense_batch(x, batch, batch_size=data.num_graphs, max_num_nodes=128)")
        .mind("Nodes beyond the bound are dropped without a word; a bound that is too large pads more.")
        .at("torch_geometric/utils/_to_dense_batch.py", "to_dense_batch")
        .line("num_nodes.max()")
        .often("every call"),
    entry(L127, "flash-linear-attention: chunks of packed sequences", Kind::DynamicShape)
        .triggers(&["prepare_chunk_indices(cu_seqlens, chunk_size)", "chunk_gla(q, k, v, cu_seqlens=cu)"])
        .why("The number of chunks is read from cu_seqlens, once for each tensor.")
        .fix(SyncFreeApi, "pass cu_seqlens_cpu= beside cu_seqlens=")
        .before("o, _ = chunk_kda(q, k, v, g, beta, cu_seqlens=cu)")
        .after("o, _ = chunk_kda(q, k, v, g, beta, cu_seqlens=cu, cu_seqlens_cpu=cu_cpu)  # as the loader made it")
        .mind("Both must hold the same. Operations of older versions do not take it: upgrade.")
        .versions("cu_seqlens_cpu= since fla#698")
        .sources("fla#752, fla#698, flash-linear-attention 0.5.2")
        .at("fla/ops/utils/index.py", "")
        .often("every new cu_seqlens"),
    option(L128, "DGL GraphBolt: sampling on the GPU")
        .triggers(&["datapipe.sample_neighbor(graph, [10, 10])"])
        .why("The numbers of sampled neighbours and of unique nodes are read at every layer.")
        .fix(SyncFreeApi, "sample_neighbor(…, asynchronous=True), DGL 2.4")
        .before("datapipe = datapipe.sample_neighbor(graph, [10, 10])")
        .after("datapipe = datapipe.sample_neighbor(graph, [10, 10], asynchronous=True)")
        .mind("Sampling then runs ahead on a thread of its own, with more memory.")
        .versions("DGL 2.4 and later")
        .sources("dgl#6910, DGL 2.4")
        .at("dgl/graphbolt/", "")
        .often("every layer of a batch"),
    entry(L129, "TorchRec: lengths of a KeyedJaggedTensor", Kind::DynamicShape)
        .triggers(&["kjt.length_per_key()", "kjt.split([1, 1])"])
        .why("The numbers of values by key must be a Python list before the values can be split or sent.")
        .fix(SyncFreeApi, "TrainPipelineSparseDist reads them a batch ahead")
        .before("loss, out = model(batch)")
        .after("pipeline = TrainPipelineSparseDist(model, optimizer, device)  # once\nout = pipeline.progress(batches)")
        .mind("Three batches are in flight. A loader that knows the lengths passes them: KeyedJaggedTensor(…, length_per_key=lengths).")
        .sources("TorchRec 1.4")
        .at("torchrec/sparse/jagged_tensor.py", "_maybe_compute_length_per_key _length_per_key_from_stride_per_key _length_per_key_from_lengths _safe_tolist _cuda_tolist_impl")
        .often("every batch"),
    entry(L130, "Transformer Engine: longest sequence", Kind::DynamicShape)
        .triggers(&["DotProductAttention(…)(q, k, v, qkv_format='thd', cu_seqlens_q=cu)"])
        .why("Without max_seqlen_q= and max_seqlen_kv= the longest sequence is read from cu_seqlens, in every layer.")
        .fix(SyncFreeApi, "pass max_seqlen_q= and max_seqlen_kv=")
        .before("o = attention(q, k, v, qkv_format='thd', cu_seqlens_q=cu, cu_seqlens_kv=cu)")
        .after("o = attention(q, k, v, qkv_format='thd', cu_seqlens_q=cu, cu_seqlens_kv=cu,\n              max_seqlen_q=longest, max_seqlen_kv=longest)")
        .mind("longest must be a Python int, and not below the true one.")
        .versions("since TransformerEngine#555 (1.3)")
        .sources("TransformerEngine#555, Transformer Engine 2.20")
        .at("transformer_engine/pytorch/attention.py", "forward")
        .at("transformer_engine/pytorch/attention/dot_product_attention/dot_product_attention.py", "forward")
        .line(".max().item() + 63)")
        .often("every layer"),
    entry(L131, "Ultralytics: times of the stages of predict()", Kind::Timing)
        .triggers(&["model.predict(image)", "YOLO('yolo11n.pt')(image)"])
        .intended()
        .why("predict() takes the time of its three stages for each batch, and drains the GPU six times for it.")
        .fix(Delay, "predict() with larger batches: six waits a batch")
        .before("results = [model.predict(image)[0] for image in images]")
        .after("results = model.predict(images, batch=32)")
        .mind("Results come later, and memory rises.")
        .or(&[
            "the module without predict(): model.model(x), where no times and no Results are needed",
            "an engine of one's own: model.export(format='engine')",
        ])
        .driver_api(super::CTX_SYNC)
        .sources("ultralytics#21411, Ultralytics 8.3")
        .at("ultralytics/utils/ops.py", "time")
        .often("twice a stage"),
    option(L132, "PyG: pooling by score")
        .triggers(&["TopKPooling(16)(x, edge_index, batch=batch)", "SAGPooling(16)(x, edge_index, batch=batch)"])
        .why("Graphs, nodes and edges that remain are counted: their numbers depend on the batch and on the scores.")
        .fix(Leave, "no option: how many nodes remain depends on scores")
        .or(&["for PyG's maintainers: SelectTopK could take the number of graphs, which the batch has"])
        .sources("torch_geometric 2.8.0")
        .at("torch_geometric/nn/pool/select/", "")
        .at("torch_geometric/nn/pool/connect/", "")
        .often("every pooling layer"),
    entry(L133, "PyG: filler of a dense batch", Kind::Upload)
        .triggers(&["to_dense_batch(x, batch, fill_value=0.0)"])
        .why("The number that fills up short graphs is uploaded at each call.")
        .fix(SyncFreeApi, "fill_value= a tensor on the GPU, made once")
        .before("dense, mask = to_dense_batch(x, batch)")
        .after("zero = torch.zeros((), device=x.device)  # once\ndense, mask = to_dense_batch(x, batch, fill_value=zero)")
        .mind("Of the dtype of x, so that it is taken as it is.")
        .sources("torch_geometric 2.8.0")
        .at("torch_geometric/utils/_to_dense_batch.py", "to_dense_batch")
        .line("torch.as_tensor(fill_value")
        .often("every call"),
    entry(L134, "generate(): special tokens uploaded", Kind::Upload)
        .triggers(&["model.generate(ids)"])
        .why("Ids of the tokens that begin, end and fill up a text become tensors on the GPU.")
        .fix(Leave, "little to gain: up to four numbers a call")
        .sources("transformers 5.17.0")
        .at("transformers/generation/utils.py", "_tensor_or_none")
        .often("once per call"),
    entry(L135, "generate(): a forced last token", Kind::Upload)
        .triggers(&["model.generate(ids, forced_eos_token_id=2)"])
        .why("The score of the forced token is written by an index tensor, for which its number is uploaded.")
        .fix(Remove, "leave out forced_eos_token_id: cut the text on the CPU")
        .before("out = model.generate(ids, max_new_tokens=64, forced_eos_token_id=2)")
        .after("out = model.generate(ids, max_new_tokens=64)")
        .mind("A text that reaches its longest length then has no end token: add it where the text is used. It is paid once a call.")
        .sources("transformers 5.17.0")
        .at("transformers/generation/logits_process.py", "__call__")
        .line("self.eos_token_id] = 0")
        .often("once per call"),
    option(L136, "CuPy: sorts")
        .triggers(&["cupy.sort(a)", "cupy.argsort(a)", "cupy.lexsort(keys)"])
        .op("thrust::sort")
        .trace("cudaStreamSynchronize without a copy, after the kernels of a sort")
        .why("thrust waits for the stream at the end of a sort, although nothing is returned to the CPU.")
        .fix(Remove, "upgrade CuPy: cupy#9497 sorts without the wait")
        .before("# CuPy 13\norder = cupy.argsort(keys)")
        .after("# a CuPy with cupy#9497\norder = cupy.argsort(keys)")
        .mind("a.get() still waits for the result.")
        .sources("cupy#9126, cupy#9497; it waits in CuPy 13.4")
        .at("cupy/_sorting/sort.py", "")
        .often("every sort"),
];

/// Cases in which a caller shows that the title of an entry does not apply there, with the entry that replaces it.
pub(super) const EARLY_STOPPING_CASES: &[(Case, PatternId)] =
    &[(Case::Through(EARLY_STOPPING, "on_train_epoch_end"), L106)];
pub(super) const MASK_CASES: &[(Case, PatternId)] =
    &[(Case::Through("transformers/generation/utils.py", "generate"), L119)];
pub(super) const BATCH_CASES: &[(Case, PatternId)] = &[(Case::Through(TRAINER, ""), L121)];
pub(super) const PADDING_CASES: &[(Case, PatternId)] = &[(Case::Through(TRAINER, "evaluation_loop"), L122)];
pub(super) const SAVING_CASES: &[(Case, PatternId)] =
    &[(Case::Through(CHECKPOINT, ""), L107), (Case::Through(TRAINER, "_save_checkpoint"), L108)];
pub(super) const BINCOUNT_CASES: &[(Case, PatternId)] = &[
    (Case::Through("torchmetrics/utilities/data.py", "_flexible_bincount"), L113),
    (Case::Through(CURVES, "_multiclass_auroc_compute _multiclass_average_precision_compute"), L111),
];
pub(super) const POOL_CASES: &[(Case, PatternId)] =
    &[(Case::Through("torch_geometric/nn/pool/select/", ""), L132)];
pub(super) const SCALE_CASES: (Case, PatternId) = (Case::Through("accelerate/optimizer.py", "step"), L123);
