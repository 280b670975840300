//! What callers pass: the recorded callers, frame by frame, and the call that led into a function.

use super::search::{Answer, Object, OnHost, Parameter, Scene, Search, all};
use crate::python::parse::{dotted, nodes, split_callee};
use crate::verdict::source::flow::{Step, Steps};
use crate::verdict::source::infer::{Here, Placements};
use crate::verdict::source::locate::{Callee, callee};
use ruff_python_ast::ExprCall;

impl Search<'_> {
    pub(super) fn given_by_caller(
        &self,
        parameter: &Parameter<'_>,
        callee: &Callee<'_>,
        inner: usize,
    ) -> Answer {
        let Some(caller) = self.site.caller(inner, callee.name) else { return Answer::Unknown };
        let (calls, _) = callee::calls(&caller.file, caller.frame, callee, caller.direct);
        let placements = Placements::new(&caller.file);
        let mut known: Vec<Option<OnHost>> = Vec::new();
        for path in &calls {
            let Some(call) = nodes::call(path) else { return Answer::Unknown };
            let outer = Callee::around(path);
            let outside = |parameter: &Parameter<'_>| self.given_by_caller(parameter, &outer, caller.at);
            let object = parameter.class.and_then(|class| {
                let method = nodes::name(&call.func) == callee.name;
                let expr = if method { nodes::receiver(call)? } else { &*call.func };
                Some(Object { expr, class, recorded: &self.site.frames.get(inner)?.file })
            });
            let here = Here { placements: &placements, path };
            let (recorded, function) = (&caller.frame.file, nodes::range(nodes::function_around(path)));
            let scene =
                Scene { search: self, here, recorded, function, outside: &outside, object: object.as_ref() };
            match scene.passed(call, parameter) {
                // Another call of the function may pass other values.
                Answer::OnHost(one) => known.push(Some(OnHost { data: true, ..one })),
                other => return other,
            }
        }
        all(known).into()
    }
}

impl<'a> Scene<'_, 'a> {
    /// What a call passes for a parameter: by name, in its place, or in wrappers' `*args` and `**kwargs`.
    pub(super) fn passed(self, call: &'a ExprCall, parameter: &Parameter<'_>) -> Answer {
        let (parameters, mut steps) = (&parameter.function.parameters, parameter.steps.clone());
        let callee = dotted(&call.func);
        let owner = split_callee(split_callee(&callee).0).1;
        let decorated = |name: &str| {
            parameter.function.decorator_list.iter().any(|one| nodes::name(&one.expression) == name)
        };
        if parameter.class.is_some_and(|class| class == owner) && !decorated("classmethod") {
            // `Class.method(self, …)`.
            return Answer::Unknown;
        }
        let bound = usize::from(parameter.class.is_some() && !decorated("staticmethod"));
        let mut all = parameters.posonlyargs.iter().chain(&parameters.args);
        let is = |one: &Option<Box<ruff_python_ast::Parameter>>| {
            one.as_ref().is_some_and(|one| one.name.as_str() == parameter.name)
        };
        if is(&parameters.vararg) {
            let Some(Step::Index(index)) = steps.pop() else { return Answer::Unknown };
            let Some(position) = (all.count() + index).checked_sub(bound) else { return Answer::Unknown };
            return self.in_place(call, position, steps);
        }
        if is(&parameters.kwarg) {
            let Some(Step::Key(key)) = steps.pop() else { return Answer::Unknown };
            return self.by_name(call, &key, steps);
        }
        let position = all.position(|one| one.name().as_str() == parameter.name);
        let position = position.and_then(|position| position.checked_sub(bound));
        let in_place =
            position.map_or(Answer::Default, |position| self.in_place(call, position, steps.clone()));
        match in_place {
            known @ Answer::OnHost(_) => known,
            other => match (other, self.by_name(call, parameter.name, steps)) {
                (_, known @ Answer::OnHost(_)) => known,
                (Answer::Default, Answer::Default) => Answer::Default,
                _ => Answer::Unknown,
            },
        }
    }

    fn in_place(self, call: &'a ExprCall, position: usize, mut steps: Steps) -> Answer {
        let arguments = &call.arguments.args[..call.arguments.args.len().min(position + 1)];
        match arguments.iter().enumerate().find_map(|(at, one)| Some((at, one.as_starred_expr()?))) {
            Some((at, rest)) => {
                steps.push(Step::Index(position - at));
                self.find(&rest.value, steps).into()
            }
            None => arguments.get(position).map_or(Answer::Default, |one| self.find(one, steps).into()),
        }
    }

    fn by_name(self, call: &'a ExprCall, name: &str, mut steps: Steps) -> Answer {
        if let Some(keyword) = call.arguments.find_keyword(name) {
            return self.find(&keyword.value, steps).into();
        }
        let rest = call.arguments.keywords.iter().find(|keyword| keyword.arg.is_none());
        rest.map_or(Answer::Default, |rest| {
            steps.push(Step::Key(name.to_owned()));
            self.find(&rest.value, steps).into()
        })
    }
}
