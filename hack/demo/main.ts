import { styleText } from 'node:util';
import { runDemo } from './demo.ts';
import { parseArguments, usage } from './options.ts';

const parsed = parseArguments(process.argv.slice(2));
if (!parsed.ok) {
  process.stderr.write(`${parsed.problem}\n`);
  process.exit(2);
}
if (parsed.help) {
  process.stdout.write(usage);
  process.exit(0);
}

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    // The second signal ends the demo at once; started programs notice and end by themselves.
    if (stop.signal.aborted) process.exit(1);
    stop.abort();
  });
}
// The reader of the pipe has closed it, as `head` does.
process.stdout.on('error', () => stop.abort());

const exitCode = await runDemo(parsed, {
  write: (text) => process.stdout.write(text),
  // styleText knows NO_COLOR and whether this is a terminal.
  paint: (style, text) => styleText(style, text, { stream: process.stdout }),
  signal: stop.signal,
  nowMs: Date.now,
});
process.exit(exitCode);
