import { execFileSync } from 'node:child_process';
import { cp, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';

/** What of client-sdk is not needed to pack it. */
const needless = /[/\\](?:node_modules|dist|test|\.tap)$/;

/**
 * Packs client-sdk into a tarball as npm publishes it. A copy is packed: packing puts another package.json in place for a moment,
 * which would be found by whatever else runs in the checkout.
 */
export async function packSdk(root: string, folder: string): Promise<void> {
  const copy = temporaryFolder();
  try {
    const sdk = join(copy.path, 'client-sdk');
    await cp(join(root, 'client-sdk'), sdk, { recursive: true, filter: (path) => !needless.test(path) });
    await cp(join(root, 'tsconfig.json'), join(copy.path, 'tsconfig.json'));
    // The compiler.
    await symlink(resolve(root, 'node_modules'), join(copy.path, 'node_modules'));
    // A program that watches its processes gives them options of Node, which the compiler does not bear.
    const npm = ['-u', 'NODE_OPTIONS', 'npm', 'pack', '--loglevel=error'];
    execFileSync('env', [...npm, `--pack-destination=${resolve(folder)}`], { cwd: sdk, stdio: 'pipe' });
  } finally {
    copy.remove();
  }
}
