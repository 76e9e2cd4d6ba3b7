import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { parseArgs } from 'node:util';
import { isFree } from '@tollgate/kit/server-process';
import { freePort } from '@tollgate/testkit/tcp';
import { defaultPorts, type Ports as PlatformPorts } from '../../cli/src/up/ports.ts';

export type DemoArguments =
  | { readonly ok: true; readonly help: boolean; readonly once: boolean }
  | { readonly ok: false; readonly problem: string };

export const usage = `make demo [ARGS="<flags>"], or: node hack/demo/main.ts [<flags>]

Starts the whole platform on this machine: the auth server with a PostgreSQL of its own, the xDS server over a
folder with an AccessPolicy, the rate limit service that follows it, an application, and a real Envoy in front.
Then it does what a user would, shows the results in a table, and stays up to be played with until Ctrl-C.

  --once  end after the table; exit code 0 if every row has the expected result, 1 if not
  --help  this text

NO_COLOR=1 turns colours off.
`;

export function parseArguments(args: readonly string[]): DemoArguments {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { help: { type: 'boolean', short: 'h' }, once: { type: 'boolean' } },
    });
    return { ok: true, help: values.help ?? false, once: values.once ?? false };
  } catch (error) {
    // Its code is ERR_PARSE_ARGS_*; its message goes on with advice about "--" that is of no use
    // here.
    const [problem = ''] = error instanceof Error ? error.message.split('. ') : [];
    return { ok: false, problem: `${problem}. The flags are --once and --help.` };
  }
}

/** Where everything listens, on the loopback address. */
export type Ports = PlatformPorts & { readonly shop: number };

/** Preferred ports. envoy.yaml has the same numbers. */
export const preferredPorts: Ports = { ...defaultPorts, shop: 9000 };

const portNames = Object.keys(preferredPorts) as (keyof Ports)[]; // of exactly these keys

/**
 * Held by a demo as long as its process runs, since its parts need a while until they hold the
 * ports of their own.
 */
const claimPort = 10_999;

/**
 * Takes each preferred port that is free, and any free one instead of the others. While another
 * demo runs, or still starts, only others.
 */
export async function choosePorts(preferred: Ports = preferredPorts, claim = claimPort): Promise<Ports> {
  const holder = await listen(claim);
  holder?.unref();
  const ports: Record<keyof Ports, number> = { ...preferred };
  for (const name of portNames) {
    if (holder === undefined || !(await isFree(ports[name]))) ports[name] = await freePort();
  }
  return ports;
}

/** One line that says which ports are other than usual; undefined when none is. */
export function describeMoved(ports: Ports): string | undefined {
  const moved = portNames.filter((name) => ports[name] !== preferredPorts[name]);
  if (moved.length === 0) return undefined;
  const replacements = moved.map((name) => `${ports[name]} instead of ${preferredPorts[name]}`);
  return `some ports are taken, so this time: ${replacements.join(', ')}`;
}

/** An Envoy configuration with each preferred port replaced by the one that is used. */
export function movePorts(envoyYaml: string, ports: Ports): string {
  return envoyYaml.replace(/\bport_value: (\d+)/g, (unchanged, number: string) => {
    const name = portNames.find((candidate) => preferredPorts[candidate] === Number(number));
    return name === undefined ? unchanged : `port_value: ${ports[name]}`;
  });
}

/** Undefined when the port is taken. */
async function listen(port: number): Promise<Server | undefined> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  } catch {
    return undefined;
  }
}

const hourMs = 3_600_000;

/**
 * The scenario takes three seconds; on a machine that is busy with other work many times as long.
 */
const marginMs = 45_000;

/**
 * Time to wait so that no window of an hour or a day ends during the demo, which would reset its
 * counters. 0 when the next full hour is more than 45 seconds away.
 */
export function waitForWindowMs(nowMs: number): number {
  const leftMs = hourMs - (nowMs % hourMs);
  return leftMs > marginMs ? 0 : leftMs;
}
