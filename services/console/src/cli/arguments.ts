import { type Outcome, parseFlags, wrongUsage } from '@tollgate/kit/cli';
import packageJson from '../../package.json' with { type: 'json' };

const help = `tollgate-console

The web console: shows and changes what the services do, over their admin APIs, with the rights of the person who is
signed in.

It is configured by environment variables, listed in docs/settings-console.md. docs/console.md says how to start it.

  -version
        Print the version.
  -help
        Print this.
`;

/** Handles command line arguments; undefined when there are none and the service should start. */
export function handleArguments(args: readonly string[]): Outcome | undefined {
  if (args.length === 0) return undefined;
  const parsed = parseFlags({ version: { kind: 'switch', doc: 'Print the version.' } }, args);
  if (parsed.kind === 'help') return { exitCode: 0, output: help };
  if (parsed.kind === 'values') return { exitCode: 0, output: `tollgate-console ${packageJson.version}\n` };
  return wrongUsage('tollgate-console', [
    ...parsed.problems,
    'the service is configured by environment variables',
  ]);
}
