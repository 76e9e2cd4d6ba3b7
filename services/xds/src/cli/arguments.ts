import { type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import packageJson from '../../package.json' with { type: 'json' };

const help = `tollgate-xds

The xDS server of rate limits: reads RateLimitConfig resources (ratelimit.tollgate.dev/v1alpha1) from a Kubernetes
cluster or a folder of manifests, serves them to rate limit services over ADS, and writes their status.

It is configured by environment variables, listed in docs/settings-xds.md. To try it:

  XDS_FOLDER=<folder of manifests> tollgate-xds

and then, in another terminal:

  BACKEND_TYPE=memory DISABLE_STATS=true LOG_LEVEL=info CONFIG_TYPE=GRPC_XDS_SOTW tollgate-ratelimit

  -version
        Print the version.
  -help
        Print this.

http://localhost:8090/ shows the limits and the connected limiters. tollgate-xds-check checks manifests without serving them.
`;

/** Handles command line arguments; undefined when there are none and the service should start. */
export function handleArguments(args: readonly string[]): Outcome | undefined {
  if (args.length === 0) return undefined;
  const parsed = parseFlags({ version: { kind: 'switch', doc: 'Print the version.' } }, args);
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (parsed.kind === 'values') return { exitCode: 0, output: `tollgate-xds ${packageJson.version}\n` };
  return wrongUsage('tollgate-xds', [
    ...parsed.problems,
    'the service is configured by environment variables',
  ]);
}
