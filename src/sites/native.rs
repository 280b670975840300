//! The C++ chain of a call: the operation it names, and its readable part.

use crate::model::{binding, own_function};
use crate::text::Names;
use std::sync::Arc;

/// The innermost Python-level method that a chain names, without its class.
pub fn method(chain: &[Arc<str>]) -> Option<&str> {
    chain.iter().find_map(|symbol| Some(binding(symbol)?.1))
}

/// The autograd node that a chain is in, e.g. `IndexBackward0`.
pub fn node(chain: &[Arc<str>]) -> Option<&str> {
    chain.iter().find_map(|symbol| {
        let (path, _) = symbol.split_once("::apply")?;
        let name = path.rsplit("::").next()?;
        path.starts_with("torch::autograd::generated::").then_some(name)
    })
}

/// The ATen operators that a chain names, innermost first.
pub fn operators<S: AsRef<str>>(chain: &[S]) -> impl Iterator<Item = &str> + Clone {
    chain.iter().filter_map(|symbol| symbol.as_ref().split_once("at::_ops::")?.1.split("::").next())
}

/// The innermost ATen operator that is not a general step of every copy; else the innermost.
pub fn operator(chain: &[Arc<str>]) -> Option<&str> {
    const GENERAL: &[&str] =
        &["copy_", "_to_copy", "to", "item", "_local_scalar_dense", "contiguous", "clone", "detach"];
    let mut names = operators(chain);
    let first = names.clone().next();
    names.find(|name| !GENERAL.contains(name) && !name.starts_with("to_")).or(first)
}

/// Whether autograd's engine itself reads a number, not a function or hook: only anomaly detection does.
pub fn reads_in_engine(chain: &[Arc<str>]) -> bool {
    let read = chain.iter().rposition(|symbol| symbol.contains("::item"));
    let caller = read.and_then(|at| chain.get(at + 1));
    caller.is_some_and(|caller| caller.contains("autograd::Engine::evaluate_function"))
}

/// Whether a chain is inside a TorchScript function: then no line of the Python stack waits.
pub fn is_scripted(chain: &[Arc<str>]) -> bool {
    chain.iter().any(|symbol| symbol.contains("torch::jit::InterpreterState"))
}

/// The waiting function of a program without Python.
pub fn caller(chain: &[Arc<str>]) -> Option<String> {
    own_function(&readable(chain)).cloned()
}

/// A chain without interpreter frames and wrappers, demangled, without parameter lists; innermost first.
pub fn readable(chain: &[Arc<str>]) -> Vec<String> {
    let end = chain.iter().position(|s| is_interpreter(s)).unwrap_or(chain.len());
    let own = chain[..end].iter().filter(|symbol| !is_wrapper(symbol));
    let mut names: Vec<String> = own.map(|symbol| short(&demangle(symbol))).collect();
    names.retain(|name| !name.is_empty());
    names.dedup();
    names
}

/// Frames of CPython: from there on the Python stack says more than the chain.
pub fn is_interpreter(symbol: &str) -> bool {
    const STARTS: Names = Names(
        "_PyEval PyEval_ _PyObject PyObject_ _PyFunction PyCFunction cfunction_ method_vectorcall \
         _PyVectorcall vectorcall_ PyVectorcall slot_ PyNumber_ builtin_ object_ tp_new \
         cfunction_vectorcall method_ wrapper_ type_call PyRun_ Py_Run Py_Bytes pymain _start \
         __libc_start call_function do_call_core PyFloat_ PyLong_",
    );
    STARTS.iter().any(|s| symbol.starts_with(s))
}

/// Dispatcher and registration wrappers, present around every operator.
fn is_wrapper(symbol: &str) -> bool {
    const PARTS: Names = Names(
        "c10::impl::wrap_kernel_functor make_boxed_from_unboxed c10::impl::BoxedKernelWrapper ::redispatch(",
    );
    PARTS.iter().any(|p| symbol.contains(p))
}

fn demangle(symbol: &str) -> String {
    /// A longer mangled name is damaged or hostile.
    const LONGEST: usize = 4096;
    if !symbol.starts_with("_Z") || symbol.len() > LONGEST {
        return symbol.to_owned();
    }
    let demangled = cpp_demangle::Symbol::new(symbol).ok().and_then(|s| s.demangle().ok());
    demangled.unwrap_or_else(|| symbol.to_owned())
}

/// `void at::native::nonzero_cuda_out_impl<bool>(at::Tensor const&, at::Tensor&)` as `at::native::nonzero_cuda_out_impl`:
/// template arguments, parameters and return type dropped.
pub fn short(symbol: &str) -> String {
    let plain = symbol.replace("(anonymous namespace)", "anonymous").replace("<unnamed>", "anonymous");
    let mut depth = 0usize;
    let mut name = String::new();
    for c in plain.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            // Only the parameters are left. A name cannot be empty: `(lambda)` stays whole.
            '(' if depth == 0 && !name.trim().is_empty() => break,
            c if depth == 0 => name.push(c),
            _ => {}
        }
    }
    let name = name.trim_end();
    let last = name.rsplit(' ').next().unwrap_or(name);
    if last.is_empty() { plain } else { last.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(symbols: &[&str]) -> Vec<Arc<str>> {
        symbols.iter().map(|&s| s.into()).collect()
    }

    #[test]
    fn a_chain_names_method_and_operator() {
        let c = chain(&[
            "cudaStreamSynchronize",
            "void at::native::nonzero_cuda_out_impl<bool>(at::Tensor const&, at::Tensor&)",
            "at::native::nonzero_cuda(at::Tensor const&)",
            "c10::impl::wrap_kernel_functor_unboxed_<x>::call(y)",
            "at::_ops::nonzero::call(at::Tensor const&)",
            "at::_ops::index_Tensor::call(at::Tensor const&)",
            "torch::autograd::THPVariable_getitem(_object*, _object*)",
            "_PyEval_EvalFrameDefault",
        ]);
        assert_eq!(method(&c), Some("getitem"));
        assert_eq!(operator(&c), Some("nonzero"));
        assert_eq!(
            readable(&c),
            [
                "cudaStreamSynchronize",
                "at::native::nonzero_cuda_out_impl",
                "at::native::nonzero_cuda",
                "at::_ops::nonzero::call",
                "at::_ops::index_Tensor::call",
                "torch::autograd::THPVariable_getitem"
            ]
        );
    }

    #[test]
    fn general_steps_stand_back() {
        let c = chain(&[
            "at::_ops::copy_::call(x)",
            "at::_ops::_to_copy::call(x)",
            "at::_ops::bincount::call(x)",
        ]);
        assert_eq!(operator(&c), Some("bincount"));
        assert_eq!(operator(&c[..2]), Some("copy_"));
        assert_eq!(method(&chain(&["THCPModule_cudaSynchronize(_object*, _object*)"])), Some("synchronize"));
        assert_eq!(method(&chain(&["main", "0x7f"])), None);
        assert_eq!(
            short("std::tuple<at::Tensor, at::Tensor> at::native::f<long>(at::Tensor const&)"),
            "at::native::f"
        );
        assert_eq!(short("at::(anonymous namespace)::wrapper(int)"), "at::anonymous::wrapper");
    }
}
