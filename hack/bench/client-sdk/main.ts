// `make bench-client`: what the OAuth 2.0 client costs, beside bare fetch and its peers.
import { readMachineFacts } from '../machine-facts.ts';
import { parsePageOptions } from '../page-options.ts';
import { formatClientBench, runClientBench } from './run-client-bench.ts';
import { writeClientPage } from './write-client-page.ts';

const helpText = `make bench-client ARGS="..."       or: node hack/bench/client-sdk/main.ts ...

Measures client-sdk beside bare fetch, openid-client and simple-oauth2 in one run, over loopback only:
token requests a second, what an authorized request costs over fetch, and the size of what is bundled.

  --quick  a tenth of the time: for trying, not for comparing
  --write  write docs/benchmarks-client-sdk.md (full time)
  --help   print this
`;

const options = parsePageOptions(process.argv.slice(2));
if (options.kind === 'help') {
  process.stdout.write(helpText);
} else if (options.kind === 'wrong') {
  process.stderr.write(`bench: ${options.problem}\nbench: --help lists what it takes\n`);
  process.exitCode = 2;
} else {
  const facts = readMachineFacts();
  const duration = options.quick
    ? { warmUpRounds: 1, rounds: 3, roundMs: 300 }
    : { warmUpRounds: 5, rounds: 7, roundMs: 1000 };
  const report = await runClientBench(duration, (text) => process.stderr.write(text));
  process.stdout.write(`${formatClientBench(report)}\n`);
  if (options.write) process.stdout.write(`written: ${writeClientPage(report, facts)}\n`);
}
