import t from 'tap';
import { missingNativeParts, readPlatform } from '../install-packages.ts';

const arm64 = { os: 'linux', libc: 'glibc', cpu: 'arm64' };

t.test('there are images for two processors', async (t) => {
  t.equal(readPlatform(''), undefined, 'this machine');
  t.strictSame(readPlatform('linux/amd64'), { os: 'linux', libc: 'glibc', cpu: 'x64' });
  t.strictSame(readPlatform('linux/arm64'), arm64);
  t.throws(() => readPlatform('linux/s390x'), /no images for linux\/s390x: linux\/amd64 and linux\/arm64/);
  t.throws(() => readPlatform('windows/amd64'), /no images for windows\/amd64/);
});

t.test('an image that lacks the native part of a package for its platform is not made', async (t) => {
  const lock = {
    packages: {
      '': { optionalDependencies: { 'root-arm64': '1' } },
      'node_modules/hash': {
        optionalDependencies: {
          'hash-arm64': '1',
          'hash-arm64-musl': '1',
          'hash-x64': '1',
          'no-native': '1',
        },
      },
      'node_modules/hash-arm64': { os: ['linux'], cpu: ['arm64'], libc: ['glibc'] },
      'node_modules/hash-arm64-musl': { os: ['linux'], cpu: ['arm64'], libc: ['musl'] },
      'node_modules/hash-x64': { os: ['linux'], cpu: ['x64'] },
      'node_modules/no-native': {},
      'node_modules/of-others': { optionalDependencies: { 'others-arm64': '1' } },
      'node_modules/others-arm64': { os: ['linux'], cpu: ['arm64'] },
    },
  };
  const missing = (...installed: string[]) =>
    missingNativeParts(lock, arm64, (folder) => installed.includes(folder.replace('node_modules/', '')));
  t.strictSame(missing('hash'), ['hash-arm64']);
  t.strictSame(missing('hash', 'hash-arm64'), []);
});
