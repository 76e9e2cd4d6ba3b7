import t from 'tap';
import { missingPackages, platformEntry } from '../complete-lock.ts';

t.test('optional dependencies without an entry are missing', async (t) => {
  const lock = {
    packages: {
      'node_modules/@a/tool': {
        version: '1.0.0',
        dev: true,
        optionalDependencies: { '@a/linux-x64': '1.0.0', '@a/darwin-arm64': '1.0.0', '@a/own-x64': '1.0.0' },
      },
      'node_modules/@a/linux-x64': { version: '1.0.0' },
      'node_modules/@a/tool/node_modules/@a/own-x64': { version: '1.0.0' },
    },
  };
  t.same(missingPackages(lock), [
    { name: '@a/darwin-arm64', version: '1.0.0', wantedBy: 'node_modules/@a/tool', dev: true },
  ]);
});

t.test('the platform of a package comes from its name', async (t) => {
  const entry = (name: string) => platformEntry({ name, version: '1.2.3', wantedBy: 'x', dev: true });
  t.match(entry('@biomejs/cli-darwin-arm64'), {
    version: '1.2.3',
    os: ['darwin'],
    cpu: ['arm64'],
    optional: true,
  });
  t.match(entry('@oxc-parser/binding-linux-arm-musleabihf'), { os: ['linux'], cpu: ['arm'], libc: ['musl'] });
  t.match(entry('@oxc-parser/binding-win32-ia32-msvc'), { os: ['win32'], cpu: ['ia32'] });
  t.match(entry('@bufbuild/buf-linux-armv7'), { os: ['linux'], cpu: ['arm'] });
});

t.test('a missing package without a platform is an error', async (t) => {
  const wanted = { name: 'left-pad', version: '1.0.0', wantedBy: 'node_modules/x', dev: false };
  t.throws(() => platformEntry(wanted), {
    message: 'node_modules/x wants left-pad@1.0.0, which the registry does not have',
  });
});
