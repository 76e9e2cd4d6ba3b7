import { type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import packageJson from '../../package.json' with { type: 'json' };

const help = `tollgate-ratelimit

The rate limit service: Envoy asks it over gRPC (envoy.service.ratelimit.v3) whether a request may pass. Rules come from
YAML files or from a management server (xDS), counters are kept in Redis or in memory.

It is configured by environment variables alone: docs/settings-ratelimit.md has the table. To try it here:

  BACKEND_TYPE=memory USE_PUSHSTATS=false RUNTIME_ROOT=<folder> RUNTIME_APPDIRECTORY=<folder of rule files in it> tollgate-ratelimit

  -version
        Print the version.
  -help
        Print this.

tollgate-ratelimit-client asks a running service, tollgate-ratelimit-check checks rule files.
`;

/** What the service's arguments ask for in the place of serving; undefined when there are none. */
export function answerArguments(args: readonly string[]): Outcome | undefined {
  if (args.length === 0) return undefined;
  const parsed = parseFlags({ version: { kind: 'switch', doc: 'Print the version.' } }, args);
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (parsed.kind === 'values') return { exitCode: 0, output: `tollgate-ratelimit ${packageJson.version}\n` };
  return wrongUsage('tollgate-ratelimit', [
    ...parsed.problems,
    'the service is configured by environment variables',
  ]);
}
