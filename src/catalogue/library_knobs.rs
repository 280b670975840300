//! L65 to L79, L93, L96 to L103: further places of libraries, with the option that the user can turn.
//!
//! Each was read in the version that it names, and so was its option.

use super::{Category, LOGGED, Pattern, Strategy::*};
use crate::vocabulary::{Kind, PatternId, PatternId::*};

/// An entry whose trace follows from its kind.
pub(super) const fn entry(id: PatternId, title: &'static str, kind: Kind) -> Pattern {
    let base = match kind {
        Kind::Upload => {
            LOGGED.op("aten::to").trace("a copy from pageable memory to the GPU, then cudaStreamSynchronize")
        }
        Kind::Explicit | Kind::Timing => LOGGED
            .op("torch.cuda.synchronize, torch.cuda.Event.synchronize")
            .trace("cudaDeviceSynchronize or cudaEventSynchronize without a copy"),
        Kind::DynamicShape => LOGGED
            .op("aten::nonzero, aten::item, Tensor.tolist")
            .trace("a copy of a count or of sizes to host memory, then cudaStreamSynchronize"),
        Kind::CpuCompute => LOGGED
            .category(Category::DeviceMovement)
            .op("aten::to, Tensor.tolist")
            .trace("a copy to host memory, then cudaStreamSynchronize or cudaEventSynchronize"),
        Kind::ErrorCheck => LOGGED
            .op("aten::is_nonzero")
            .trace("a copy of 1 byte to pinned host memory, then cudaStreamSynchronize"),
        _ => LOGGED,
    };
    base.of_kind(id, title, kind)
}

const TRAINER_ARGS: &str = "args = TrainingArguments(output_dir='out')";
const CANDIDATES: &str = "transformers/generation/candidate_generator.py";
const BANK: &str = "lightly/models/modules/memory_bank.py";
const DETECTION: &str = "torchvision/models/detection/";

pub(super) const PATTERNS: &[Pattern] = &[
    entry(L65, "Lightning: batches moved to the GPU", Kind::Upload)
        .triggers(&["Trainer().fit(model, loader)"])
        .at("lightning/fabric/utilities/apply_func.py", "batch_to")
        .often("every batch")
        .why("Lightning copies with non_blocking=True, which needs pinned memory to be of use.")
        .fix(NonBlocking, "DataLoader(pin_memory=True): the rest is done already")
        .before("loader = DataLoader(ds, batch_size=64)")
        .after("loader = DataLoader(ds, batch_size=64, pin_memory=True)"),
    entry(L66, "Lightning: table of results", Kind::Logging)
        .triggers(&["trainer.validate(model)", "trainer.test(model)"])
        .at("lightning/pytorch/loops/evaluation_loop.py", "_print_results")
        .often("every validate or test")
        .why("Metrics are read one by one to print a table.")
        .fix(Remove, "pass verbose=False")
        .before("trainer.validate(model)")
        .after("trainer.validate(model, verbose=False)"),
    entry(L67, "Lightning: tensors given to a logger", Kind::Logging)
        .triggers(&["logger.log_metrics({'loss': loss})"])
        .at("lightning/fabric/loggers/tensorboard.py", "log_metrics")
        .at("lightning/fabric/loggers/csv_logs.py", "_handle_value")
        .at("lightning/pytorch/loggers/litlogger.py", "log_metrics")
        .often("every call")
        .why("The logger converts each tensor at once.")
        .fix(Delay, "log every N steps")
        .before("logger.log_metrics({'loss': loss})")
        .after("if step % 100 == 0:\n    logger.log_metrics({'loss': loss}, step=step)"),
    entry(L68, "Trainer: learning rate for the log", Kind::Logging)
        .triggers(&["last_lr.item()"])
        .at("transformers/trainer.py", "_get_learning_rate")
        .often("every optimizer step")
        .why("A scheduler that keeps its rate in a tensor has it read for the log.")
        .fix(Remove, "give the optimizer a float: lr=1e-4")
        .before("optimizer = torch.optim.AdamW(params, lr=torch.tensor(1e-4, device='cuda'))")
        .after("optimizer = torch.optim.AdamW(params, lr=1e-4)")
        .mind("Graphs recorded by torch.compile or CUDA keep a rate that is a number."),
    entry(L69, "Trainer: predictions of an evaluation to the host", Kind::CpuCompute)
        .triggers(&["trainer.evaluate()", "trainer.predict(ds)"])
        .at("transformers/trainer_pt_utils.py", "nested_numpify")
        .often("every evaluation, or every eval_accumulation_steps")
        .why("Logits and labels become NumPy arrays for compute_metrics.")
        .fix(Remove, "prediction_loss_only=True where only the loss counts")
        .before(TRAINER_ARGS)
        .after("args = TrainingArguments(output_dir='out', prediction_loss_only=True)")
        .mind("compute_metrics is then not called, predict() gives no predictions, and metric_for_best_model can only be the loss.")
        .or(&["batch_eval_metrics=True hands each batch to compute_metrics on the GPU, which adds up there"]),
    entry(L70, "generate(): stop flag read a token late", Kind::ControlFlow)
        .triggers(&["copy_done.synchronize()"])
        .at("transformers/generation/utils.py", "__call__ finish")
        .line("copy_done")
        .often("every token; not on CUDA as of transformers 5.23")
        .why("Whether to stop is read from a pinned copy of the token before: most of the wait is hidden.")
        .fix(Leave, "nothing to do: it is read a token late already"),
    entry(L71, "generate(): candidates looked up in the prompt", Kind::DynamicShape)
        .triggers(&[
            "model.generate(x, prompt_lookup_num_tokens=10)",
            "model.generate(x, assistant_model=small)",
        ])
        .at(CANDIDATES, "get_candidates _get_tokens_diag _get_longest_diag_index")
        .often("every round of candidates")
        .why("Where the n-gram stands, and how many tokens follow it, is searched on the GPU and read.")
        .fix(Remove, "leave it off where few candidates are accepted")
        .before("out = model.generate(x, prompt_lookup_num_tokens=10)")
        .after("out = model.generate(x)")
        .mind("Measure: accepted candidates save whole forward passes."),
    entry(L72, "detection losses: matching on the CPU", Kind::CpuCompute)
        .triggers(&["DetrForObjectDetection(config)(pixels, labels=labels)"])
        .at("transformers/loss/", "forward")
        .line("cost_matrix.view(")
        .often("every loss")
        .why("SciPy solves the assignment on the CPU.")
        .fix(Leave, "nothing to do: SciPy needs the costs on the CPU"),
    entry(L73, "diffusers: images to the host", Kind::CpuCompute)
        .triggers(&["pipe(prompt).images"])
        .at("diffusers/image_processor.py", "pt_to_numpy")
        .often("every call of a pipeline")
        .why("Images become NumPy arrays, then PIL images.")
        .fix(SyncFreeApi, "output_type='pt' keeps them on the GPU")
        .before("images = pipe(prompt).images")
        .after("images = pipe(prompt, output_type='pt').images")
        .mind("Only where GPU code goes on with them."),
    entry(L74, "diffusers: prompts cut to their length", Kind::DynamicShape)
        .triggers(&["pipe(prompt)"])
        .at("diffusers/pipelines/", "_get_t5_prompt_embeds _extract_masked_hidden")
        .often("every call of a pipeline")
        .why("Embeddings are cut by lengths that stand on the GPU.")
        .fix(Coalesce, "encode prompts once: pass prompt_embeds")
        .before("images = [pipe(prompt).images for seed in seeds]")
        .after("with torch.no_grad():\n    embeds, negative = pipe.encode_prompt(prompt)\nimages = [pipe(prompt_embeds=embeds, negative_prompt_embeds=negative).images for seed in seeds]")
        .mind("What encode_prompt returns differs between pipelines."),
    entry(L75, "diffusers: safety checker", Kind::CpuCompute)
        .triggers(&["StableDiffusionPipeline.from_pretrained(name)"])
        .at("diffusers/pipelines/stable_diffusion/safety_checker.py", "forward")
        .often("every call of a pipeline")
        .why("Scores are compared with thresholds on the CPU.")
        .fix(Remove, "safety_checker=None where another filter stands")
        .before("pipe = StableDiffusionPipeline.from_pretrained(name)")
        .after("pipe = StableDiffusionPipeline.from_pretrained(name, safety_checker=None, requires_safety_checker=False)")
        .mind("Keep it in services that the public uses."),
    entry(L76, "PyG: self-loops of a graph", Kind::DynamicShape)
        .triggers(&["GCNConv(16, 16)", "add_remaining_self_loops(edge_index)"])
        .at("torch_geometric/utils/loop.py", "add_remaining_self_loops remove_self_loops segregate_self_loops get_self_loop_attr")
        .often("every layer and forward")
        .why("Self-loops are cut out by a mask, so the number of edges is read.")
        .fix(SyncFreeApi, "add_self_loops=False, loops added by the data set")
        .before("conv = GCNConv(16, 16)")
        .after("data = T.AddRemainingSelfLoops()(data)  # once, or transform= of the data set\nconv = GCNConv(16, 16, add_self_loops=False)")
        .mind("Every graph must come with its loops. Pooling and dropout_edge change edges after that: check that loops stay.")
        .or(&["one graph for all steps, never with mini-batches: GCNConv(cached=True) keeps the first graph for ever"])
        .sources("torch_geometric 2.8.0"),
    entry(L77, "PyG: parts of a graph", Kind::DynamicShape)
        .triggers(&["subgraph(nodes, edge_index)", "unbatch(x, batch)", "mask_to_index(mask)"])
        .at("torch_geometric/utils/_subgraph.py", "subgraph")
        .at("torch_geometric/utils/_unbatch.py", "unbatch unbatch_edge_index")
        .at("torch_geometric/utils/mask.py", "mask_to_index")
        .at("torch_geometric/utils/dropout.py", "dropout_edge")
        .often("every call")
        .why("How many nodes and edges remain depends on values.")
        .fix(Offload, "cut graphs in the loader, on the CPU")
        .before("edge_index, _ = subgraph(nodes, data.edge_index)  # on the GPU, every step")
        .after("class Parts(Dataset):\n    def __getitem__(self, i):\n        return cut(graphs[i])  # calls subgraph on the CPU, anew each time")
        .mind("Only where the part does not depend on what the model computes."),
    entry(L78, "torchvision: boxes without an area", Kind::ErrorCheck)
        .triggers(&["fasterrcnn_resnet50_fpn()(images, targets)"])
        .at(DETECTION, "forward")
        .line("degenerate_boxes.any()")
        .often("every image in training")
        .why("Targets are checked image by image.")
        .fix(Leave, "no option turns it off"),
    entry(L79, "torchvision: anchors and proposals by score", Kind::DynamicShape)
        .triggers(&["fasterrcnn_resnet50_fpn()(images, targets)"])
        .at("torchvision/models/detection/_utils.py", "__call__ set_low_quality_matches_")
        .at("torchvision/ops/poolers.py", "_multiscale_roi_align")
        .at(DETECTION, "compute_loss fastrcnn_loss subsample select_training_samples postprocess_detections")
        .often("every image")
        .why("How many anchors match depends on the boxes.")
        .fix(Leave, "no option: the numbers of boxes depend on values"),
    entry(L93, "torchmetrics: detection on the CPU", Kind::CpuCompute)
        .triggers(&["MeanAveragePrecision().compute()"])
        .at("torchmetrics/detection/", "")
        .often("every compute, for each box")
        .why("COCO's evaluation runs on the CPU, and reads scores and areas box by box.")
        .fix(Coalesce, "update() with CPU tensors: one copy a tensor, not a box")
        .before("metric.update(preds, target)")
        .after("to_cpu = lambda items: [{k: v.cpu() for k, v in item.items()} for item in items]\nmetric.update(to_cpu(preds), to_cpu(target))")
        .mind("update() then waits for its copies, a few for each image.")
        .or(&[
            "boxes alone: MeanAveragePrecision(compute_on_cpu=True) does the same; masks it cannot move",
            "update() in the loop, compute() once after it",
            "MeanAveragePrecision(backend='faster_coco_eval') computes faster",
        ]),
    entry(L96, "Pyro: warnings of NaN and infinity", Kind::ErrorCheck)
        .triggers(&["warn_if_nan(log_p)", "warn_if_inf(log_p)", "svi.step(batch)"])
        .at("pyro/util.py", "warn_if_nan warn_if_inf")
        .often("every sample statement, forward and backward")
        .why("Each log probability and its gradient is tested, only to warn. On by default.")
        .fix(Remove, "pyro.enable_validation(False), or python -O")
        .before("svi = SVI(model, guide, optim, loss=Trace_ELBO())")
        .after("pyro.enable_validation(False)  # once the model is right\nsvi = SVI(model, guide, optim, loss=Trace_ELBO())")
        .mind("It also turns off the checks of distributions. The surrogate loss is tested once a step all the same."),
    entry(L97, "Pyro: terms of the ELBO", Kind::Logging)
        .triggers(&["Trace_ELBO()", "torch_item(site['log_prob_sum'])"])
        .at("pyro/infer/util.py", "torch_item")
        .often("every sample statement of model and guide; once a step with other estimators")
        .why("The loss that svi.step() returns is added up in Python, number by number; gradients come from another sum.")
        .fix(Coalesce, "TraceMeanField_ELBO or JitTrace_ELBO: one read a step")
        .before("svi = SVI(model, guide, optim, loss=Trace_ELBO())")
        .after("svi = SVI(model, guide, optim, loss=TraceMeanField_ELBO())")
        .mind("TraceMeanField_ELBO needs a guide that is fully reparametrised and independent, JitTrace_ELBO a model of static structure."),
    entry(L98, "skorch: loss of every batch", Kind::Logging)
        .triggers(&["net.fit(X, y)", "self.history.record_batch(prefix + '_loss', step['loss'].item())"])
        .at("skorch/net.py", "run_single_epoch")
        .line("history.record_batch")
        .often("every batch")
        .why("The history keeps a number for every batch; means and tables are made of it at the end of the epoch.")
        .fix(Leave, "no option: override run_single_epoch to read once an epoch")
        .sources("skorch 1.4.0"),
    entry(L99, "fastai: losses and metrics of every batch", Kind::Logging)
        .triggers(&["learn.fit_one_cycle(3)", "to_detach(learn.loss.mean())"])
        .at("fastai/learner.py", "accumulate")
        .often("every batch of training, twice and more of validation")
        .why("The Recorder copies each loss to the CPU to smooth it for bar and table.")
        .fix(Remove, "train without the Recorder where nobody watches")
        .before("learn.fit(10)")
        .after("learn.remove_cbs([ProgressCallback, Recorder])\nlearn.fit(10)")
        .mind("Bar, table and what asks for learn.recorder (lr_find, SaveModelCallback) go with it.")
        .sources("fastai 2.8.12"),
    entry(L100, "lightly: memory bank on the CPU", Kind::RoundTrip)
        .triggers(&["NTXentLoss(memory_bank_size=(4096, 128))"])
        .at(BANK, "_dequeue_and_enqueue")
        .line("self.bank[ptr")
        .often("every step")
        .why("The bank is a buffer of the criterion: keys come down to it, and it goes up for the loss.")
        .fix(Offload, "criterion.to(device)")
        .before("criterion = NTXentLoss(memory_bank_size=(4096, 128))")
        .after("criterion = NTXentLoss(memory_bank_size=(4096, 128)).to(device)"),
    entry(L101, "lightly: place in the memory bank", Kind::HostKnown)
        .triggers(&["int(self.bank_ptr)"])
        .at(BANK, "_dequeue_and_enqueue")
        .line("int(self.bank_ptr)")
        .often("every step")
        .why("Where the next batch goes is a counter, which lies on the device with the bank.")
        .fix(Offload, "keep the counter on the CPU")
        .before("criterion = criterion.to(device)")
        .after("criterion = criterion.to(device)\nbank = criterion.memory_bank\nbank.bank_ptr = bank.bank_ptr.cpu()"),
    entry(L102, "ignite: loss of every batch", Kind::Logging)
        .triggers(&["create_supervised_trainer(model, optimizer, loss_fn)"])
        .at("ignite/engine/__init__.py", "<lambda>")
        .line("loss.item()")
        .often("every batch")
        .why("The trainer's output is the loss as a number, whether anybody looks at it or not.")
        .fix(Delay, "output_transform that keeps the tensor")
        .before("trainer = create_supervised_trainer(model, optimizer, loss_fn)")
        .after("keep = lambda x, y, y_pred, loss: loss.detach()\ntrainer = create_supervised_trainer(model, optimizer, loss_fn, output_transform=keep)")
        .mind("Handlers and loggers then get a tensor, and read it where they show it: every N iterations.")
        .sources("ignite 0.5.5"),
    entry(L103, "PyG: a batch moved to the GPU", Kind::Upload)
        .triggers(&["data.to(device)", "batch.cuda()"])
        .at("torch_geometric/data/data.py", "to cuda <lambda>")
        .often("every batch")
        .why("Each tensor of the batch is uploaded with its own blocking copy unless asked otherwise.")
        .fix(NonBlocking, "batch.to(device, non_blocking=True), pinned by the loader")
        .before("for batch in DataLoader(data, 64):\n    batch = batch.to(device)")
        .after("for batch in DataLoader(data, 64, pin_memory=True):\n    batch = batch.to(device, non_blocking=True)")
        .mind("Only from pinned memory: DataLoader(pin_memory=True). Lightning hands such batches on without non_blocking: override transfer_batch_to_device.")
        .sources("torch_geometric 2.8.0"),
];
