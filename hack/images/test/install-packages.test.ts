import t from 'tap';
import { platformOptions } from '../install-packages.ts';

t.test('native parts are chosen for the platform of the image', async (t) => {
  t.strictSame(platformOptions(''), []);
  t.strictSame(platformOptions('linux/amd64'), ['--os=linux', '--libc=glibc', '--cpu=x64']);
  t.strictSame(platformOptions('linux/arm64'), ['--os=linux', '--libc=glibc', '--cpu=arm64']);
  t.throws(() => platformOptions('linux/s390x'), /no images for linux\/s390x: linux\/amd64 and linux\/arm64/);
  t.throws(() => platformOptions('windows/amd64'), /no images for windows\/amd64/);
});
