import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { awaitUntil } from '@tollgate/testkit/await-until';

/** The server as its users start it, in a process of its own. */
export interface ServerCommand {
  readonly url: string;
  /** Asks it to end as an operator would, and answers its exit code. */
  stop(): Promise<number | null>;
  /** Waits until it ends by itself, and answers its exit code. */
  ended(): Promise<number | null>;
  /** Ends it as a crash would. */
  kill(): Promise<void>;
  /** What it wrote. */
  output(): string;
}

const program = join(import.meta.dirname, '../../src/main.ts');
/** A cluster is made, or recovers, in the meantime. */
const startTimeoutMs = 60_000;
/** In place of the port of a server that is no more. */
const ended = 'ended';

/** Starts `serve` in development mode with its data in a folder, and waits until it listens. */
export async function startServerCommand(
  folder: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<ServerCommand> {
  const child = spawn(process.execPath, [program, 'serve'], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      SVC_EXT_AUTHZ_GRPC_PORT: '0',
      SVC_EXT_AUTHZ_HTTP_PORT: '0',
      SVC_MODE: 'development',
      SVC_DEVELOPMENT_FOLDER: folder,
      SVC_MAILER_AUTOCONFIRM: 'true',
      ...variables,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const exited = once(child, 'exit');
  const closed = once(child, 'close');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  try {
    const port = await awaitUntil(() => listeningPort(child, output), {
      what: 'the server to listen',
      timeoutMs: startTimeoutMs,
    });
    if (port === ended) {
      // Its last words come after its exit code.
      await closed;
      throw new Error('it ended');
    }
    return {
      url: `http://127.0.0.1:${port}`,
      async stop() {
        if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
        await exited;
        return child.exitCode;
      },
      async ended() {
        await closed;
        return child.exitCode;
      },
      kill,
      output: () => output,
    };
  } catch (error) {
    await kill();
    throw new Error(`the server did not start. Its output:\n${output}`, { cause: error });
  }
}

function listeningPort(child: ChildProcess, output: string): string | undefined {
  if (child.exitCode !== null) return ended;
  return /msg="?listening"? http=(\d+)/.exec(output)?.[1];
}
