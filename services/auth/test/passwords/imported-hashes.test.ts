import t from 'tap';
import { isImportableHash, verifyHash } from '../../src/passwords/imported-hashes.ts';

const repeated = (text: string, count: number) => Buffer.from(text.repeat(count)).toString('base64');

const vectors = [
  [
    'scrypt, RFC 7914 §12',
    'pleaseletmein',
    `$scrypt$ln=14,r=8,p=1$${repeated('SodiumChloride', 1)}$cCO9yzr9c0hGHAbNgf046/2o+7qQT44+qbVD9lRdofLVQylVYT8Pz2LUlwUkKpr55h6F3A1lHkDfzwF7RVdYhw==`,
  ],
  [
    'PBKDF2 with SHA-256, RFC 7914 §11',
    'Password',
    '$pbkdf2-sha256$i=80000,l=64$TmFDbA$TdzY9guYviGDDO5e8icB+WQaRBjQTAQUrv8Ih2s0q1ah1CWhIlgzVJrbhBtRybMXaicr3ruh0HhHj2Kzl/M8jQ',
  ],
  [
    'PBKDF2 with SHA-1, RFC 6070 §2',
    'passwordPASSWORDpassword',
    `$pbkdf2$4096$${repeated('saltSALT', 5).slice(0, 48)}$PS7sT+QchJuAyNg2YsDkSospGpZM8vBwOA`,
  ],
  [
    'passlib',
    'password',
    '$pbkdf2-sha256$6400$.6UI/S.nXIk8jcbdHx3Fhg$98jZicV16ODfEsEZeYPGHU3kbrUrvUEXOPimVSQDD44',
  ],
  [
    'PBKDF2 with SHA-512, of Python',
    'correct horse',
    '$pbkdf2-sha512$25000$MDEyMzQ1Njc4OWFiY2RlZg$NAtVcXr7DbXedVbBm+JvbbmENXwAmeETSMIk+8rC9F5GBbGumPcNIpwLppBM7vaXnbPUqZhH3UgUjzNRgCPZMg',
  ],
  ['Django, of Python', 'lètmein', 'pbkdf2_sha256$1000$seasalt$JgZryXe2Ga8ysg6XbzkLpTdyPQrHqsinbL9BnnhgX4A='],
] as const;

for (const [name, password, hash] of vectors)
  t.test(`hash matches its password only: ${name}`, async (t) => {
    t.ok(isImportableHash(hash));
    t.equal(await verifyHash(password, hash), true);
    t.equal(await verifyHash(`${password}x`, hash), false);
    const changed = hash.replace(
      /\$([^$])([^$]*)$/,
      (_, first, rest) => `$${first === 'A' ? 'B' : 'A'}${rest}`,
    );
    t.equal(await verifyHash(password, changed), false, 'another hash');
  });

const salt = 'c29tZXNhbHQ';
const bytes = 'aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo';
const bcrypt = (cost: string) => `$2b$${cost}$${'.'.repeat(53)}`;
for (const [reason, hash] of [
  ['bcrypt of hours', bcrypt('31')],
  ['bcrypt of seconds', bcrypt('17')],
  ['argon2 with 2 GiB', `$argon2id$v=19$m=2097152,t=1,p=1$${salt}$${bytes}`],
  ['argon2 with 20 passes over 1 GiB', `$argon2id$v=19$m=1048576,t=20,p=1$${salt}$${bytes}`],
  ['argon2d, which leaks by timing', `$argon2d$v=19$m=65536,t=2,p=1$${salt}$${bytes}`],
  ['scrypt with 1 GiB', `$scrypt$ln=20,r=8,p=1$${salt}$${bytes}`],
  ['scrypt with N = 1', `$scrypt$ln=0,r=8,p=1$${salt}$${bytes}`],
  ['scrypt with 16 passes over 256 MiB', `$scrypt$ln=17,r=15,p=16$${salt}$${bytes}`],
  ['PBKDF2 with 99,999,999 iterations', `$pbkdf2-sha512$99999999$${salt}$${bytes}`],
  ['PBKDF2 without iterations', `$pbkdf2-sha256$0$${salt}$${bytes}`],
  ['PBKDF2 with many blocks', `$pbkdf2$4000000$${salt}$${'A'.repeat(80)}`],
  ['hash so short that other passwords match', `$pbkdf2-sha256$1000$${salt}$aGFzaA`],
  ['unknown digest', `$pbkdf2-md5$1000$${salt}$${bytes}`],
  ['plain text', 'correct horse'],
  ['hash that exceeds the column', `pbkdf2_sha256$1000$${'s'.repeat(300)}$${bytes}`],
] as const)
  t.test(`rejects ${reason}`, async (t) => {
    t.notOk(isImportableHash(hash));
    if (!hash.startsWith('$2b') && !hash.startsWith('$argon2id')) t.equal(await verifyHash('x', hash), false);
  });

t.test('usual costs are accepted', (t) => {
  for (const hash of [
    bcrypt('10'),
    bcrypt('14'),
    `$argon2id$v=19$m=65536,t=3,p=4$${salt}$${bytes}`,
    `$argon2i$v=19$m=1048576,t=4,p=1$${salt}$${bytes}`,
    `$scrypt$ln=17,r=8,p=1$${salt}$${bytes}`,
    `pbkdf2_sha256$1200000$${salt}$${bytes}`,
  ])
    t.ok(isImportableHash(hash), hash);
  t.end();
});
