import { execFile } from 'node:child_process';
import { copyFile, cp, mkdir, readdir, readFile, rename } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, posix } from 'node:path';
import { promisify } from 'node:util';
import { contextFiles } from './docker-ignore.ts';
import { type Instruction, pairsOf, parseDockerfile, type Stage } from './parse-dockerfile.ts';

/** A service of which there is an image. */
export type ImageName = 'auth' | 'ratelimit' | 'xds';

/** All images, by the names of their services. */
export const imageNames: readonly ImageName[] = ['auth', 'ratelimit', 'xds'];

/** What a Dockerfile makes, without the image that it is based on. */
export interface BuiltImage {
  /** What its process sees as `workingFolder`, and where all files are that it adds to the base. */
  readonly folder: string;
  readonly workingFolder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** Who its process is: `65532:65532`. */
  readonly user: string;
  /** Arguments of node, which is the entry point of the base image. */
  readonly command: readonly string[];
}

/** A stage while it grows. */
interface StageState {
  readonly root: string;
  /** Absolute in the image. */
  workingFolder: string;
  user: string;
  command: readonly string[];
  readonly environment: Record<string, string>;
  readonly labels: Record<string, string>;
  readonly args: Record<string, string>;
}

/** Packages are installed anew: seconds, and a minute on a busy machine. */
const stepTimeoutMs = 180_000;

const repository = join(import.meta.dirname, '../../..');

/**
 * Carries out the Dockerfile of a service without Docker: every stage is a folder, its commands run on this machine. What is made is
 * for this machine, too; base images are not there.
 *
 * @param folder empty, for all stages
 * @throws Error with the output of a step that fails, and for an instruction that is not known.
 */
export async function buildImage(service: ImageName, folder: string): Promise<BuiltImage> {
  const { args, stages } = parseDockerfile(
    await readFile(join(repository, `services/${service}/Dockerfile`), 'utf8'),
  );
  const globalArgs = Object.fromEntries(args.flatMap(({ text }) => pairsOf(text)));
  const built = new Map<string, StageState>();
  const needed = neededStages(stages);
  const copies = needed.flatMap(({ instructions }) => instructions.filter(({ name }) => name === 'COPY'));
  for (const stage of needed) {
    const state = newState(join(folder, stage.name));
    await mkdir(state.root, { recursive: true });
    for (const instruction of stage.instructions) {
      const isLastCopy =
        instruction === copies.findLast(({ options }) => options.from === instruction.options.from);
      await apply(instruction, { state, built, globalArgs, isLastCopy });
    }
    built.set(stage.name, state);
  }
  const last = [...built.values()].at(-1);
  if (last === undefined) throw new Error(`the Dockerfile of ${service} has no FROM`);
  const { root, workingFolder, environment, labels, user, command } = last;
  return { folder: join(root, workingFolder), workingFolder, environment, labels, user, command };
}

/** The last stage, and those that it copies from; as Docker does, in the order of the file. */
function neededStages(stages: readonly Stage[]): readonly Stage[] {
  const needed = new Set<string>();
  for (const { name, instructions } of stages.toReversed()) {
    if (needed.size > 0 && !needed.has(name)) continue;
    needed.add(name);
    for (const { options } of instructions) if (options.from !== undefined) needed.add(options.from);
  }
  return stages.filter(({ name }) => needed.has(name));
}

function newState(root: string): StageState {
  return { root, workingFolder: '/', user: '', command: [], environment: {}, labels: {}, args: {} };
}

interface StepContext {
  readonly state: StageState;
  readonly built: ReadonlyMap<string, StageState>;
  readonly globalArgs: Readonly<Record<string, string | undefined>>;
  /** Nothing reads the stage after this step that it copies from. */
  readonly isLastCopy: boolean;
}

async function apply(instruction: Instruction, context: StepContext): Promise<void> {
  const step = steps[instruction.name];
  if (step === undefined) throw new Error(`no way to carry out ${instruction.name} without Docker`);
  await step(instruction, context);
}

const steps: Readonly<
  Record<string, (instruction: Instruction, context: StepContext) => Promise<void> | void>
> = {
  ARG({ text }, { state, globalArgs }) {
    for (const [name, value] of pairsOf(text)) state.args[name] = value ?? globalArgs[name] ?? '';
  },
  CMD({ text }, { state }) {
    state.command = JSON.parse(text) as string[];
  },
  COPY: copy,
  ENV({ text }, { state }) {
    for (const [name, value = ''] of pairsOf(text)) state.environment[name] = value;
  },
  EXPOSE() {
    // It opens nothing.
  },
  LABEL({ text }, { state }) {
    for (const [name, value = ''] of pairsOf(text)) state.labels[name] = substitute(value, state.args);
  },
  RUN: run,
  USER({ text }, { state }) {
    state.user = text;
  },
  async WORKDIR({ text }, { state }) {
    state.workingFolder = posix.resolve(state.workingFolder, text);
    await mkdir(join(state.root, state.workingFolder), { recursive: true });
  },
};

/** Links stay as they are: those in node_modules lead to the workspaces beside it. */
async function copy(
  { options, text }: Instruction,
  { state, built, isLastCopy }: StepContext,
): Promise<void> {
  const [from = '', to = ''] = text.split(/\s+/);
  const target = join(state.root, posix.resolve(state.workingFolder, to));
  if (options.from === undefined) {
    if (from !== '.') throw new Error(`no way to copy ${from} of the context without Docker, only all of it`);
    for (const path of await contextFiles(repository)) {
      await mkdir(dirname(join(target, path)), { recursive: true });
      await copyFile(join(repository, path), join(target, path));
    }
    return;
  }
  const stage = built.get(options.from);
  if (stage === undefined) throw new Error(`COPY from ${options.from}, which is no stage before this one`);
  const source = join(stage.root, from);
  // The packages are thousands of files.
  if (isLastCopy && (await readdir(target).catch(() => [''])).length === 0) await rename(source, target);
  else await cp(source, target, { recursive: true, verbatimSymlinks: true });
}

/** What ENV says of a stage that builds are places in a container, so a command gets the arguments alone. */
async function run({ text }: Instruction, { state }: StepContext): Promise<void> {
  const environment = {
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: homedir(),
    npm_config_prefer_offline: 'true',
    npm_config_update_notifier: 'false',
    ...state.args,
  };
  const assignments = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const cwd = join(state.root, state.workingFolder);
  try {
    // `env -i`: tap gives every process NODE_OPTIONS of its own, whatever `env` of execFile says.
    await promisify(execFile)('env', ['-i', ...assignments, '/bin/sh', '-c', text], {
      cwd,
      timeout: stepTimeoutMs,
    });
  } catch (error) {
    // What execFile of Node adds to its errors.
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`RUN ${text} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

function substitute(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{(\w+)\}/g, (_whole, name: string) => values[name] ?? '');
}
