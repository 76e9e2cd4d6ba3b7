import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { awaitUntil } from '@tollgate/testkit/await-until';
import { programEnvironment } from '@tollgate/testkit/processes';
import { program } from './run-command.ts';

/** The server in a child process. */
export interface ServerCommand {
  readonly url: string;
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number | null>;
  /** Waits for the exit and returns the exit code. */
  ended(): Promise<number | null>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  /** Its output so far. */
  output(): string;
}

/** Includes initdb or crash recovery. */
const startTimeoutMs = 60_000;
/** The port of a stopped server. */
const ended = 'ended';

/** Starts `serve` in development mode with its data in a folder, and waits until it listens. */
export async function startServerCommand(
  folder: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<ServerCommand> {
  const child = spawn(process.execPath, [program, 'serve'], {
    cwd: folder,
    env: programEnvironment({
      PORT: '0',
      SVC_EXT_AUTHZ_GRPC_PORT: '0',
      SVC_EXT_AUTHZ_HTTP_PORT: '0',
      SVC_MODE: 'development',
      SVC_DEVELOPMENT_FOLDER: folder,
      SVC_MAILER_AUTOCONFIRM: 'true',
      ...variables,
    }),
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
      // The last output may arrive after the exit code.
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
