import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { programEnvironment } from '@tollgate/testkit/processes';

/** A program of examples/, running. */
export interface RunningExample {
  /** The next line that it prints; undefined when it has ended. */
  nextLine(): Promise<string | undefined>;
  /** Ends it, if it runs still. */
  stop(): Promise<void>;
}

/** Outcome of a program in examples/. */
export interface ExampleOutcome {
  readonly lines: readonly string[];
  readonly exitCode: number;
}

/**
 * Starts `examples/<name>.ts` in a process of its own, with these variables and as little else as
 * it needs.
 */
export function startExample(
  name: string,
  env: Readonly<Record<string, string>>,
): RunningExample & { ended(): Promise<ExampleOutcome> } {
  const file = fileURLToPath(new URL(`../../examples/${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, [file], {
    env: programEnvironment(env),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exit = once(child, 'exit');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    nextLine: async () => {
      const next = await lines.next();
      return next.done === true ? undefined : next.value;
    },
    ended: async () => {
      const read: string[] = [];
      for (let next = await lines.next(); next.done !== true; next = await lines.next())
        read.push(next.value);
      const [exitCode] = await exit;
      return { lines: read, exitCode };
    },
    stop: async () => {
      child.kill();
      await exit;
    },
  };
}

/** Runs an example to its end. */
export function runExample(name: string, env: Readonly<Record<string, string>>): Promise<ExampleOutcome> {
  return startExample(name, env).ended();
}
