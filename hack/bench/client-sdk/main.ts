// `make bench-client`: what the OAuth 2.0 client costs, beside bare fetch and its peers.
import { runPageBench } from '../run-page-bench.ts';
import { formatClientBench, runClientBench } from './run-client-bench.ts';
import { writeClientPage } from './write-client-page.ts';

const helpText = `make bench-client ARGS="..."       or: node hack/bench/client-sdk/main.ts ...

Measures client-sdk beside bare fetch, openid-client and simple-oauth2 in one run, over loopback only:
token requests a second, what an authorized request costs over fetch, and the size of what is bundled.

  --quick  a tenth of the time: for trying, not for comparing
  --write  write docs/benchmarks-client-sdk.md (full time)
  --help   print this
`;

await runPageBench({
  helpText,
  durations: {
    // Many short rounds: the speed of a shared machine drifts within seconds.
    full: { warmUpRounds: 12, rounds: 25, roundMs: 400 },
    quick: { warmUpRounds: 1, rounds: 3, roundMs: 300 },
  },
  company: () => ({ sharedBy: 'the client and its server', programs: [] }),
  run: runClientBench,
  format: formatClientBench,
  write: writeClientPage,
});
