import { parseArgs } from 'node:util';

/** What the command line asks for. */
export type DemoArguments =
  | { readonly ok: true; readonly help: boolean; readonly once: boolean }
  | { readonly ok: false; readonly problem: string };

/** What `--help` prints. */
export const usage = `make demo [ARGS="<flags>"], or: node hack/demo/main.ts [<flags>]

Starts the whole platform on this machine: the auth server with a PostgreSQL of its own, the management server over a
folder of RateLimitConfig manifests, the rate limit service that follows it, an application, and a real Envoy in front.
Then it does what a user would, shows in a table what came of it, and stays up to be played with until Ctrl-C.

  --once  end after the table; exit code 0 if every row came out as expected, 1 if not
  --help  this text

KUBECONFIG=<file> keeps the RateLimitConfigs in that cluster, in a namespace that is removed at the end.
NO_COLOR=1 turns colours off.
`;

/** Reads the arguments after the name of the script. */
export function parseArguments(args: readonly string[]): DemoArguments {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { help: { type: 'boolean', short: 'h' }, once: { type: 'boolean' } },
    });
    return { ok: true, help: values.help ?? false, once: values.once ?? false };
  } catch (error) {
    // Its code is ERR_PARSE_ARGS_*; its message goes on with advice about "--" that is of no use here.
    const [problem = ''] = error instanceof Error ? error.message.split('. ') : [];
    return { ok: false, problem: `${problem}. The flags are --once and --help.` };
  }
}
