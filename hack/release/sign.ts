// Signs what was just pushed to a container registry, without a key: the certificate names the
// workflow that runs this.
//   node hack/release/sign.ts registry.example.com/tollgate/auth:1.2.3
//
// https://docs.sigstore.dev/cosign/signing/overview/
import { execFileSync } from 'node:child_process';

const timeoutMs = 120_000;

/**
 * The commands that sign an image or a chart by its digest, because a tag can be moved.
 *
 * @param artifact with a tag
 * @param digest of its manifest, as `docker buildx imagetools inspect` prints it
 * @throws Error when the digest is none.
 */
export function signCommand(artifact: string, digest: string): readonly string[] {
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) throw new Error(`unexpected digest of ${artifact}: ${digest}`);
  // The images of both processors are signed, too: a cluster pulls one of them.
  return ['cosign', 'sign', '--yes', '--recursive', `${artifact.replace(/:[^:/]+$/, '')}@${digest}`];
}

if (import.meta.main) {
  const [artifact = ''] = process.argv.slice(2);
  const inspect = ['buildx', 'imagetools', 'inspect', '--format={{.Manifest.Digest}}', artifact];
  const digest = execFileSync('docker', inspect, { encoding: 'utf8', timeout: timeoutMs }).trim();
  const [command = '', ...args] = signCommand(artifact, digest);
  execFileSync(command, args, { stdio: 'inherit', timeout: timeoutMs });
}
