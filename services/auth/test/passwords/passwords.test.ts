import { hash as bcryptHash } from '@node-rs/bcrypt';
import t from 'tap';
import { PasswordHasher } from '../../src/passwords/passwords.ts';

const userId = '00112233-4455-4677-8899-aabbccddeeff';

t.test('a password matches its own hash only', async (t) => {
  const hasher = new PasswordHasher({ concurrency: 1 });
  const hash = await hasher.hash('correct horse');
  t.match(hash, /^\$argon2id\$/);
  t.ok(hasher.isCurrent(hash, userId));
  t.equal(await hasher.verify('correct horse', hash, userId), true);
  t.equal(await hasher.verify('wrong horse', hash, userId), false);
  t.equal(await hasher.verifyDummy('correct horse'), false);
});

t.test('hashes of other servers are verified and need an update', async (t) => {
  const hasher = new PasswordHasher({ concurrency: 1 });
  const bcrypt = await bcryptHash('correct horse', 4);
  for (const version of ['$2a$', '$2b$', '$2y$'])
    t.equal(await hasher.verify('correct horse', bcrypt.replace('$2b$', version), userId), true, version);
  t.equal(await hasher.verify('wrong horse', bcrypt, userId), false);
  t.notOk(hasher.isCurrent(bcrypt, userId));
});

t.test('a database that is shared with GoTrue gets hashes of its form', async (t) => {
  const hasher = new PasswordHasher({ concurrency: 1, dbSharedWithGotrue: true });
  const hash = await hasher.hash('correct horse');
  t.match(hash, /^\$2a\$10\$/);
  t.ok(hasher.isCurrent(hash, userId));
  t.equal(await hasher.verify('correct horse', hash, userId), true);
});

t.test('malformed hash matches no password', async (t) => {
  const hasher = new PasswordHasher({ concurrency: 1 });
  for (const text of ['', 'correct horse', '$argon2id$v=19$m=19456', '$2a$10$short'])
    t.equal(await hasher.verify('correct horse', text, userId), false, text);
});

t.test('verifyDummy works again after the queue was full', async (t) => {
  const hasher = new PasswordHasher({ concurrency: 1 });
  const running = Array.from({ length: 51 }, () => hasher.verify('x', 'not a hash', userId));
  await t.rejects(hasher.verifyDummy('correct horse'), { code: 'hash_queue_full' });
  await Promise.all(running);
  t.equal(await hasher.verifyDummy('correct horse'), false);
});
