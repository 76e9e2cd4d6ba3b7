import { spawn } from 'node:child_process';
import type { Program } from '../../../config/redis-credentials.ts';

/** Output beyond this is an error: tokens have a few kilobytes. */
const maxOutputBytes = 64 * 1024;

/**
 * Runs a program and resolves with its standard output. Errors never contain output, which may be
 * or include a secret; its standard error is discarded for the same reason.
 *
 * @throws Error when it cannot be started, fails, takes longer than `timeoutMs` or prints too much.
 */
export function runProgram(
  { file, args }: Program,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<string> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    const chunks: Buffer[] = [];
    let size = 0;
    const end = (error: Error): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      child.kill('SIGKILL');
      // Programs that it started may keep the pipe open.
      child.stdout.destroy();
      reject(error);
    };
    const stop = (): void => end(new Error(`${file} was stopped`));
    const timer = setTimeout(() => end(new Error(`${file} did not end within ${timeoutMs}ms`)), timeoutMs);
    signal.addEventListener('abort', stop, { once: true });
    child.on('error', (error: NodeJS.ErrnoException) =>
      end(new Error(`${file} cannot be started: ${error.code ?? error.message}`)),
    );
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxOutputBytes) end(new Error(`${file} printed more than ${maxOutputBytes} bytes`));
      else chunks.push(chunk);
    });
    child.on('close', (code, killed) => {
      if (code !== 0) return end(new Error(`${file} ended with ${killed ?? `exit status ${code}`}`));
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      resolve(Buffer.concat(chunks).toString('utf8'));
    });
  });
}
