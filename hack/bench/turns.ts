import { accessSync, constants, readFileSync } from 'node:fs';
import { median } from './report.ts';

/**
 * Measures each server in each round. The order is reversed from round to round, so that a drift of
 * the machine favors none.
 */
export async function takeTurns<Server, Result>(
  servers: readonly Server[],
  rounds: number,
  measure: (server: Server) => Promise<Result>,
): Promise<Map<Server, Result[]>> {
  const results = new Map(servers.map((server): [Server, Result[]] => [server, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const server of round % 2 === 0 ? servers : servers.toReversed())
      results.get(server)?.push(await measure(server));
  }
  return results;
}

/** The median of ours / peer's over the rounds, and the extremes: `8.3 (7.9–8.6)`. */
export function formatRatio(ours: readonly number[], peers: readonly number[]): string {
  const ratios = ours.map((value, round) => value / (peers[round] ?? Number.NaN)).sort((a, b) => a - b);
  return `${[median(ratios)].map(format)} (${[ratios[0], ratios.at(-1)].map(format).join('–')})`;
}

function format(ratio = Number.NaN): string {
  return ratio.toFixed(ratio < 1 ? 2 : 1);
}

/**
 * The executable that an environment variable names, to be measured beside ours.
 *
 * @throws Error when it cannot be executed.
 */
export function findPeer(variable: 'PEER_RATELIMIT'): string | undefined {
  const path = process.env[variable];
  if (path === undefined || path === '') return undefined;
  try {
    accessSync(path, constants.X_OK);
  } catch (cause) {
    throw new Error(`${variable}=${path} is not an executable`, { cause });
  }
  return path;
}

/** Name and version of the main module of a Go program, as `go build` wrote it into the file. */
export function goModule(path: string): string {
  const [, name, version] = /\nmod\t([^\t\n]+)\t([^\t\n]+)/.exec(readFileSync(path, 'latin1')) ?? [];
  return name === undefined ? path : `${name.replace(/^github\.com\//, '')} ${version}`;
}
