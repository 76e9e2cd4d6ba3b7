// A service for the tests of signals: run with the name of a mode as its argument.
import { Lifecycle } from '@tollgate/kit/lifecycle';
import { createLogger } from '@tollgate/kit/logger';
import { runUntilSignal } from '../../src/lifecycle.ts';

const mode = process.argv[2];
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const logger = createLogger({ level: 'debug', format: 'text' });
const lifecycle = new Lifecycle({ logger, drainTimeoutMs: 10_000 });

lifecycle.add({ name: 'store', stop: () => say('store stopped') });
lifecycle.add({
  name: 'server',
  start: () => {
    if (mode === 'start fails') throw new Error('port taken');
  },
  stop: () => {
    say('server stopping');
    return mode === 'never drains' ? new Promise(() => undefined) : undefined;
  },
});
lifecycle.add({
  name: 'last',
  start: ({ signal }) => {
    say('ready');
    if (mode !== 'waits while starting') return undefined;
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  },
});
// Keeps the process alive, as a listening socket does.
const alive = setInterval(() => undefined, 1_000);
lifecycle.stopping.addEventListener('abort', () => clearInterval(alive));
// The parent's order, so that the failure comes once the service is up.
process.stdin.once('data', () => {
  if (mode === 'rejects') void Promise.reject(new Error('forgotten promise'));
  if (mode === 'rejects with nothing') void Promise.reject();
  if (mode === 'throws') throw new Error('broken listener');
});
await runUntilSignal(lifecycle, { logger, signals: process, exit: (code) => process.exit(code) });
