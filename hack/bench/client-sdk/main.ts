// `node hack/bench/client-sdk/main.ts [--quick]`: what the OAuth 2.0 client costs, beside bare fetch and its peers.
import { parseArgs } from 'node:util';
import { formatClientBench, runClientBench } from './run-client-bench.ts';

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const options = values.quick ? { rounds: 3, roundMs: 300 } : { rounds: 9, roundMs: 1000 };
const report = await runClientBench(options, (text) => process.stderr.write(text));
process.stdout.write(`${formatClientBench(report)}\n`);
