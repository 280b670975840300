//! Launchers of ranks: which rank this is, and where in a launcher's command a rank's program begins.
//!
//! ```text
//!  sync-report run -o out -- torchrun --nproc-per-node 2 train.py --lr 0.1
//!                            torchrun --no-python --nproc-per-node 2  sync-report run --rank-folder out -- python -u  train.py --lr 0.1
//! ```
//! Options are read as the launcher reads them, so far that their values pass for no program. A command whose program is not
//! clear is refused: it would run without a capture, or with other arguments.

use super::process::{is_program, on_path};
use anyhow::{Result, anyhow, bail};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variables of a rank and of the number of ranks: of torchrun, Open MPI, MPICH and Intel MPI, srun. Slurm comes last: a batch
/// script has a rank too, which mpirun passes on to all of its own.
const RANKS: [(&str, &str); 4] = [
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
];
/// Variables of a rank's number on its machine.
const LOCAL: [&str; 4] = ["LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"];

struct Launcher {
    name: &'static str,
    /// The flag with which a launcher of Python scripts starts any other program.
    as_it_is: Option<&'static str>,
    /// More flags for that.
    beside: &'static str,
    /// Options that take a value behind a blank, by how they begin; `-` and `_` are alike inside a name. `2:` before it: two values.
    valued: &'static str,
    /// Long options may begin with one dash.
    one_dash: bool,
}

/// torchrun of PyTorch 2.11, accelerate 1.12, DeepSpeed 0.18; options of srun 24.11 and Open MPI 5 that take a value.
const LAUNCHERS: [Launcher; 7] = [
    Launcher {
        name: "torchrun",
        as_it_is: Some("--no-python"),
        beside: "",
        valued: "--nnodes --nproc --rdzv --max-restarts --monitor-interval --start-method --role --log-dir -r --redirects -t --tee \
                 --local-ranks --node-rank --master --local-addr --logs-specs --event-log --numa --duplicate --signals",
        one_dash: false,
    },
    Launcher {
        name: "accelerate",
        as_it_is: Some("--no_python"),
        beside: "",
        valued: "--config --num --machine --main --mixed --dynamo-backend --dynamo-mode --gpu --rdzv --max --monitor --role --log --tee --deepspeed --zero --zero3 --offload \
                 --gradient --fsdp --megatron --mpirun --aws \
                 --fp8-amax --fp8-backend --fp8-enable --fp8-format --fp8-interval --fp8-margin --fp8-opt --fp8-override --fp8-pad --parallelism \
                 --ipex --tp --vm --env --sagemaker -t",
        one_dash: false,
    },
    Launcher {
        name: "deepspeed",
        as_it_is: Some("--no_python"),
        beside: " --no_local_rank",
        valued: "-H --hostfile -i --include -e --exclude --num --min --max --master --node --launcher --autotuning --ssh --bind-core --enable-each \
                 --log --venv",
        one_dash: false,
    },
    Launcher {
        name: "srun",
        as_it_is: None,
        beside: "",
        valued: "-A -a -B -C -c -D -d -e -G -i -J -L -M -m -N -n -o -p -q -S -T -t -w -W -x -r --account --accel --acctg --array --bb --bbf --bcast --begin \
                 --chdir --cluster --clusters --comment --constraint --container --core --cores --cpu --cpus --deadline --delay --dependency --distribution --epilog --error \
                 --exclude --export --extra --gid --gpu --gpus --gres --het --hint --input --jobid --job --licenses --mail --mcs --mem --mincpus \
                 --mpi --network --nodefile --nodelist --nodes --ntasks --open --output --partition --power --priority --prolog --profile \
                 --qos --relative --reservation --signal --slurmd --sockets --switches --task --thread --threads --time --tmp --tres --uid --wait --wckey",
        one_dash: false,
    },
    MPIRUN,
    Launcher { name: "mpiexec", ..MPIRUN },
    Launcher { name: "orterun", ..MPIRUN },
];

const MPIRUN: Launcher = Launcher {
    name: "mpirun",
    as_it_is: None,
    beside: "",
    valued: "-np -n -c -N -H -f -x -host -hosts -hostfile -machinefile -wdir -wd -path -prefix -npernode -npersocket -ppn -perhost -iface -rf -rankfile -map-by -bind-to \
             -rank-by -am -app -configfile -launcher -rmk -output -report-uri -report-pid -report-events -timeout -cpus -cpu -stdin -tune -launch-agent -default-hostfile -bootstrap -bootstrap-exec \
             -genvlist -envlist -topolib -membind -demux -prepend-pattern -outfile-pattern -errfile-pattern -nameserver -order-nodes -localhost -usize -gpus 2:-mca 2:-gmca 2:-omca 2:-pmixmca 2:-prtemca 2:-genv 2:-env",
    one_dash: true,
};

/// This process' rank.
pub fn rank() -> Option<String> {
    of_several().map(|(rank, _)| rank).or_else(|| RANKS.iter().find_map(|(rank, _)| number(rank)))
}

/// How many ranks there are, where this is one of several.
pub fn ranks() -> Option<u32> {
    of_several().and_then(|(_, all)| all.parse().ok()).filter(|all| *all > 1)
}

/// A rank and the number of ranks, of one launcher.
fn of_several() -> Option<(String, String)> {
    RANKS.iter().find_map(|(rank, ranks)| number(rank).zip(number(ranks)))
}

/// Whether a name, with `%r` and `%q{VAR}`, is another one for each rank; `%h` is one for each machine.
pub fn is_of_rank(name: &OsStr) -> bool {
    let name = name.to_string_lossy().replace("%%", "");
    let mut variables = RANKS.iter().map(|(rank, _)| rank).chain(&LOCAL);
    name.contains("%r")
        || name.contains("%h")
        || variables.any(|rank| name.contains(&format!("%q{{{rank}}}")))
}

fn number(variable: &str) -> Option<String> {
    let value = std::env::var(variable).ok()?;
    (!value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())).then_some(value)
}

/// A launcher's command, parted.
#[derive(Debug, PartialEq, Eq)]
pub struct Launch {
    /// The command up to the rank's program, with the flag that starts it as it is.
    pub launcher: Vec<OsString>,
    /// The rank's program.
    pub program: Vec<OsString>,
    /// DeepSpeed passes `--local_rank=N` to a script: from the environment here.
    pub local_rank: bool,
}

/// Parts a command that begins with a launcher, or with launchers; `None` of any other.
///
/// # Errors
/// One sentence where the rank's program cannot be told from the launcher's options.
pub fn part(command: &[OsString]) -> Result<Option<Launch>> {
    let Some((launcher, begins)) = launcher_at(command)? else { return Ok(None) };
    let rest = &command[begins..];
    let unclear = || {
        let Launcher { name, as_it_is, beside, .. } = launcher;
        let flags = as_it_is.map(|flag| format!(" {flag}{beside}")).unwrap_or_default();
        anyhow!(
            "it is not clear which program {name} starts; put the capture before it: {name} …{flags} sync-report run -o NAME -- PROGRAM"
        )
    };
    if rest.iter().any(|word| word == ":") {
        return Err(unclear());
    }
    let at = launcher.program_in(rest).ok_or_else(unclear)?;
    let given = |flags: &[&str]| rest[..at].iter().any(|word| flags.iter().any(|flag| word == flag));
    let plain = given(&["--no-python", "--no_python"]);
    let (Some(flag), false) = (launcher.as_it_is, plain) else {
        // A launcher may start another: `srun … torchrun …`.
        if let Some(inner) = part(&rest[at..])? {
            return Ok(Some(Launch {
                launcher: [&command[..begins + at], &inner.launcher].concat(),
                ..inner
            }));
        }
        if !names_program(&rest[at]) {
            return Err(unclear());
        }
        let (launcher, program) = (command[..begins + at].to_vec(), rest[at..].to_vec());
        return Ok(Some(Launch { launcher, program, local_rank: false }));
    };
    let module = given(&["-m", "--module"]);
    if !module && Path::new(&rest[at]).extension().is_none_or(|extension| extension != "py") {
        return Err(unclear());
    }
    let local_rank = launcher.name == "deepspeed" && !given(&["--no_local_rank"]);
    let mut words = command[..begins].to_vec();
    words.push(flag.into());
    words.extend(local_rank.then(|| "--no_local_rank".into()));
    words.extend(rest[..at].iter().filter(|word| !module || *word != "-m" && *word != "--module").cloned());
    let mut program: Vec<OsString> = vec![python(&command[0]), "-u".into()];
    program.extend(module.then(|| "-m".into()));
    program.extend(rest[at..].iter().cloned());
    Ok(Some(Launch { launcher: words, program, local_rank }))
}

/// The launcher that a command begins with, and where its options begin.
fn launcher_at(command: &[OsString]) -> Result<Option<(&'static Launcher, usize)>> {
    let known = |name: &str| LAUNCHERS.iter().find(|launcher| launcher.name == name);
    let Some(first) = command.first() else { return Ok(None) };
    // As distributions name them: mpirun.openmpi.
    let name = [".openmpi", ".mpich", ".hydra", ".pt"].iter().find_map(|end| base(first).strip_suffix(end));
    let name = match name.unwrap_or(base(first)) {
        "accelerate-launch" => return Ok(known("accelerate").map(|launcher| (launcher, 1))),
        "ds" => "deepspeed",
        name => name,
    };
    if let Some(launcher) = known(name) {
        let launches = launcher.name == "accelerate";
        let begins = command.get(1).is_some_and(|word| word == "launch");
        return Ok(if launches && !begins { None } else { Some((launcher, 1 + usize::from(launches))) });
    }
    let module = command.get(1).filter(|word| is_python(first) && *word == "-m").and(command.get(2));
    let name = match module.and_then(|module| module.to_str()) {
        Some("torch.distributed.run") => "torchrun",
        Some("accelerate.commands.launch") => return Ok(known("accelerate").map(|launcher| (launcher, 3))),
        Some("deepspeed.launcher.runner") => "deepspeed",
        Some("torch.distributed.launch") => {
            bail!("torch.distributed.launch is the old torchrun: start the program with torchrun")
        }
        _ => return Ok(None),
    };
    Ok(known(name).map(|launcher| (launcher, 3)))
}

impl Launcher {
    /// The first word that is neither an option nor the value of one.
    fn program_in(&self, words: &[OsString]) -> Option<usize> {
        let mut at = 0;
        loop {
            let word = words.get(at)?.to_str();
            match word {
                Some("--") => return (at + 1 < words.len()).then_some(at + 1),
                Some(option) if option.starts_with('-') => at += 1 + self.values_of(option),
                _ => return Some(at),
            }
        }
    }

    /// How many words behind an option are its values.
    fn values_of(&self, option: &str) -> usize {
        if option.contains('=') {
            return 0;
        }
        let bare = option.trim_start_matches('-');
        let long = option.starts_with("--") || self.one_dash;
        let named = bare.replace('_', "-");
        let takes = |word: &str| {
            let word = word.trim_start_matches('-');
            // A short option with its value in one word, `-n2`, is another word.
            if word.len() == 1 || !long {
                named == word
            } else {
                named == word || named.starts_with(&format!("{word}-"))
            }
        };
        let all = self.valued.split_whitespace();
        let mut found = all.filter_map(|word| match word.strip_prefix("2:") {
            Some(word) => takes(word).then_some(2),
            None => takes(word).then_some(1),
        });
        found.next().unwrap_or(0)
    }
}

fn base(word: &OsStr) -> &str {
    Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default()
}

fn is_python(word: &OsStr) -> bool {
    let rest = base(word).strip_prefix("python");
    rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// Whether a word names a program that can be run here; a rank's Python may be elsewhere.
fn names_program(word: &OsStr) -> bool {
    is_python(word) || file_of(word).is_some_and(|file| is_program(&file))
}

/// The file that a shell would run for a word.
fn file_of(word: &OsStr) -> Option<PathBuf> {
    if word.to_string_lossy().contains('/') { Some(word.into()) } else { on_path(word) }
}

/// The Python of a launcher: itself, or the one beside it.
fn python(launcher: &OsStr) -> OsString {
    if is_python(launcher) {
        return launcher.to_owned();
    }
    let file = file_of(launcher);
    let folder = file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let beside =
        ["python", "python3"].map(|name| folder.join(name)).into_iter().find(|python| python.is_file());
    beside.map_or_else(|| "python3".into(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parted(command: &str) -> Result<Option<String>> {
        let words: Vec<OsString> = command.split(' ').map(Into::into).collect();
        let text = |words: &[OsString]| words.join(OsStr::new(" ")).to_string_lossy().into_owned();
        Ok(part(&words)?.map(|launch| {
            let program = text(&launch.program);
            let python = program.split_once(" -u ").filter(|_| !command.contains(" -u "));
            format!(
                "{} | {}",
                text(&launch.launcher),
                python.map_or(program.clone(), |(_, rest)| format!("python -u {rest}"))
            )
        }))
    }

    #[test]
    fn a_rank_begins_behind_the_launcher() {
        for (command, expected) in [
            (
                "torchrun --nproc-per-node 2 train.py --x 1",
                "torchrun --no-python --nproc-per-node 2 | python -u train.py --x 1",
            ),
            (
                "torchrun --nproc_per_node=2 --log-dir=/tmp/accelerate t.py",
                "torchrun --no-python --nproc_per_node=2 --log-dir=/tmp/accelerate | python -u t.py",
            ),
            (
                "torchrun --nproc-per-node 2 -m pkg.train --config conf.py",
                "torchrun --no-python --nproc-per-node 2 | python -u -m pkg.train --config conf.py",
            ),
            ("torchrun -- t.py", "torchrun --no-python -- | python -u t.py"),
            (
                "torchrun --no-python --nproc-per-node 2 python t.py",
                "torchrun --no-python --nproc-per-node 2 | python t.py",
            ),
            (
                "python -m torch.distributed.run --nproc-per-node=2 t.py",
                "python -m torch.distributed.run --no-python --nproc-per-node=2 | python -u t.py",
            ),
            (
                "accelerate launch --num_processes 2 --multi_gpu a/b.py",
                "accelerate launch --no_python --num_processes 2 --multi_gpu | python -u a/b.py",
            ),
            (
                "deepspeed --num_gpus 2 t.py",
                "deepspeed --no_python --no_local_rank --num_gpus 2 | python -u t.py",
            ),
            (
                "accelerate-launch --num_processes 2 a.py",
                "accelerate-launch --no_python --num_processes 2 | python -u a.py",
            ),
            ("mpirun.openmpi -np 2 python t.py", "mpirun.openmpi -np 2 | python t.py"),
            ("srun -n 2 -J deepspeed python3.11 t.py", "srun -n 2 -J deepspeed | python3.11 t.py"),
            ("srun --chdir=/home/u/python -n2 python t.py", "srun --chdir=/home/u/python -n2 | python t.py"),
            ("srun --epilog ./clean.sh -n2 python t.py", "srun --epilog ./clean.sh -n2 | python t.py"),
            (
                "mpirun --report-bindings --hostfile h python t.py",
                "mpirun --report-bindings --hostfile h | python t.py",
            ),
            ("srun -n 2 bash -c x python", "srun -n 2 | bash -c x python"),
            (
                "srun -N 2 --gpus-per-node 4 torchrun --nnodes 2 t.py",
                "srun -N 2 --gpus-per-node 4 torchrun --no-python --nnodes 2 | python -u t.py",
            ),
            (
                "mpirun --prefix /opt/python -np 4 --mca a b /venv/bin/python -m mod",
                "mpirun --prefix /opt/python -np 4 --mca a b | /venv/bin/python -m mod",
            ),
        ] {
            assert_eq!(parted(command).expect("it is clear").as_deref(), Some(expected), "{command}");
        }
        for other in ["python train.py torchrun", "./server", "accelerate config", "python -m mod torchrun"] {
            assert_eq!(parted(other).expect("it is clear"), None, "{other}");
        }
        for unclear in [
            "srun -n2 ./job conf.py",
            "mpirun -np 1 python a.py : -np 1 python b.py",
            "torchrun --new-option 3 t.py",
            "srun",
        ] {
            let error = parted(unclear).expect_err(unclear).to_string();
            assert!(error.contains("sync-report run -o NAME -- PROGRAM"), "{unclear}: {error}");
            let as_it_is = unclear.starts_with("torchrun").then_some("torchrun … --no-python sync-report");
            assert!(error.contains(as_it_is.unwrap_or_default()), "{error}");
        }
        for (name, own) in
            [("a_%r", true), ("a_%q{RANK}", true), ("%q{SLURM_JOB_ID}", false), ("a_%%r", false)]
        {
            assert_eq!(is_of_rank(OsStr::new(name)), own, "{name}");
        }
    }
}
