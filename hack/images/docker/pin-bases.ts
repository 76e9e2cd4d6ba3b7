import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { pairsOf, parseDockerfile } from '../without-docker/parse-dockerfile.ts';

/** A registry that does not answer must not hold up a build for ever. */
const timeoutMs = 60_000;

/**
 * The base images of a Dockerfile, by their arguments, as they are in the registry now: `node:24@sha256:…`. Those in `given` come before
 * the ones in the Dockerfile.
 *
 * @throws Error when Docker or the registry does not know one.
 */
export async function pinBases(
  dockerfile: string,
  given: Readonly<Record<string, string | undefined>>,
): Promise<Record<string, string>> {
  const { args } = parseDockerfile(await readFile(dockerfile, 'utf8'));
  const pairs = args.flatMap(({ text }) => pairsOf(text));
  return Object.fromEntries(pairs.map(([name, image = '']) => [name, withDigest(given[name] ?? image)]));
}

function withDigest(image: string): string {
  if (image.includes('@sha256:')) return image;
  const inspect = ['buildx', 'imagetools', 'inspect', '--format={{.Manifest.Digest}}', image];
  const digest = execFileSync('docker', inspect, { encoding: 'utf8', timeout: timeoutMs }).trim();
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) throw new Error(`docker says of ${image}: ${digest}`);
  return `${image}@${digest}`;
}
