import { describeFlags, type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import { formatTrialReport, type TrialReport } from '../trial/report.ts';

const command = 'tollgate-ratelimit trial';

const flags = {
  address: {
    kind: 'text',
    value: 'URL',
    default: 'http://127.0.0.1:6070',
    doc: 'Debug port of a running service.',
  },
  json: { kind: 'switch', doc: 'Print the counts as JSON.' },
} as const;

const help = `${command} [flags]

Shows what the rules on trial would change: how many requests they would refuse, and how many are refused now.

${describeFlags(flags)}
Exits with 0, also without rules on trial; with 1 when the service does not respond, 2 when the arguments are invalid.
`;

/** A page of 10,000 rules, over a slow port forwarding. */
const timeoutMs = 10_000;

/** Runs the command with the arguments after `trial`. */
export async function showTrial(args: readonly string[]): Promise<Outcome> {
  const parsed = parseFlags(flags, args);
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (parsed.kind === 'wrong') return wrongUsage(command, parsed.problems);
  const { address, json } = parsed.values;
  if (!/^https?:$/.test(URL.parse(address)?.protocol ?? '')) {
    return wrongUsage(command, [`-address is a URL such as ${flags.address.default}, not '${address}'`]);
  }
  try {
    const report = await fetchReport(address);
    return { exitCode: 0, output: json ? `${JSON.stringify(report, null, 2)}\n` : formatTrialReport(report) };
  } catch (error) {
    const { message, cause } = error instanceof Error ? error : new Error(String(error));
    const reason = cause instanceof Error ? cause.message : message;
    return { exitCode: 1, errors: `cannot read ${address}/trial: ${reason}\n` };
  }
}

async function fetchReport(address: string): Promise<TrialReport> {
  const response = await fetch(new URL('/trial', address), {
    headers: { accept: 'application/json' },
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`HTTP ${response.status}, is this the debug port of the service?`);
  // The page of this service, in this form.
  return JSON.parse(text) as TrialReport;
}
