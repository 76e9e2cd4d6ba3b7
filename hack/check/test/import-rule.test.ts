import t from 'tap';
import { importProblems } from '../import-rule.ts';

const domainFile = 'services/ratelimit/src/domain/window.ts';

/** Every case: a file, its text, and the problems with their lines. */
const cases: Record<string, { path: string; text: string; problems: string[] }> = {
  'a service may import packages, proto and npm': {
    path: 'services/ratelimit/src/app.ts',
    text: `import fastify from 'fastify';
      import { parse } from '@tollgate/kit/settings';
      import { file_x } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';`,
    problems: [],
  },
  'a service may not import another service, by name or by path': {
    path: 'services/ratelimit/src/app.ts',
    text: `import { a } from '@tollgate/auth/a';
export { b } from '../../auth/src/b.ts';`,
    problems: [
      '1: services/ratelimit must not import services/auth',
      '2: ../../auth/src/b.ts leaves services/ratelimit: import rooms by package name',
    ],
  },
  'a package may not import a service, nor reach into another package by path': {
    path: 'packages/kit/src/logger.ts',
    text: `const a = await import('@tollgate/ratelimit/a');
import '../../rules/src/unit.ts';`,
    problems: [
      '1: packages/kit must not import services/ratelimit',
      '2: ../../rules/src/unit.ts leaves packages/kit: import rooms by package name',
    ],
  },
  'the client SDK imports no room at all': {
    path: 'client-sdk/src/index.ts',
    text: `import type { A } from '@tollgate/kit/a';`,
    problems: ['1: client-sdk must not import packages/kit'],
  },
  'tests of the client SDK may use the testkit, and nothing else of the rest': {
    path: 'client-sdk/test/a.test.ts',
    text: `import { a } from '@tollgate/testkit/a'; import { b } from '@tollgate/kit/b';`,
    problems: ['1: client-sdk must not import packages/kit'],
  },
  'examples of the client SDK import it by the name it is published under': {
    path: 'client-sdk/examples/a.ts',
    text: `import { Client } from '@tollgate/oauth2-client';`,
    problems: [],
  },
  'only the auth service uses the client SDK': {
    path: 'services/xds/src/app.ts',
    text: `import { a } from '@tollgate/oauth2-client/a';`,
    problems: ['1: services/xds must not import client-sdk'],
  },
  'the auth service may use the client SDK': {
    path: 'services/auth/src/app.ts',
    text: `import { a } from '@tollgate/oauth2-client/a';`,
    problems: [],
  },
  'hack may import anything': {
    path: 'hack/demo/main.ts',
    text: `import { app } from '../../services/ratelimit/src/app.ts'; process.exit();`,
    problems: [],
  },
  'what is shipped does not import the testkit': {
    path: 'packages/kit/src/logger.ts',
    text: `import { fakeClock } from '@tollgate/testkit/fake-clock';`,
    problems: ['1: only tests and hack import @tollgate/testkit'],
  },
  'tests may import the testkit': {
    path: 'packages/kit/test/logger.test.ts',
    text: `import { fakeClock } from '@tollgate/testkit/fake-clock';`,
    problems: [],
  },
  'domain code imports domain code, rules, and types': {
    path: domainFile,
    text: `import { a } from './a.ts';
      import { b } from '../domain/deep/b.ts';
      import { unitSeconds } from '@tollgate/rules/unit';
      import type { CounterBackend } from '../ports/counter-backend.ts';
      import type { RateLimitRequest } from '@tollgate/proto/envoy/service/ratelimit/v3/rls';`,
    problems: [],
  },
  'domain code imports nothing else': {
    path: domainFile,
    text: `import { readFile } from 'node:fs/promises';
import {
  type B,
  b,
} from '../ports/b.ts';
import { create } from '@tollgate/proto/x';
import pino from 'pino';
export * from '../stats/x.ts';`,
    problems: ['node:fs/promises', '../ports/b.ts', '@tollgate/proto/x', 'pino', '../stats/x.ts'].map(
      (specifier, index) =>
        `${[1, 2, 6, 7, 8][index]}: domain code imports ${specifier}: only domain/, pure packages and types of ports and packages are allowed`,
    ),
  },
  'domain code asks no clock, no dice and no world': {
    path: domainFile,
    text: `const a = Date.now();
const b = [Math.random(), \`\${process.env.HOME} \${{ a: performance.now() }}\`];
const c = new Date();
setTimeout(f, 1);`,
    problems: [
      '1: domain code uses Date.now',
      '2: domain code uses Math.random',
      '2: domain code uses process',
      '2: domain code uses performance',
      '2: only main.ts and cli/ touch the process',
      '3: domain code uses new Date()',
      '4: domain code uses setTimeout',
    ],
  },
  'comments, strings, templates, patterns, keys and members are not uses': {
    path: domainFile,
    text: `// Date.now() and process.env
      /* import x from 'node:fs' */
      const text = "Math.random()" + 'it\\'s process' + \`Date.now() \\\${process.env}\`;
      const pattern = /process.env['"]/.test(text) && a / process.length;
      const half = total / 2; const rest = 'import "x"';
      const when = new Date(nowMs);
      function next(process: number, o: { process?: string; crypto: Date }) { return o.process; }
      export const kinds = { process: 1, import: 2 };`.replace('process.length', 'o.process'),
    problems: [],
  },
  'the rule language is as pure as domain code': {
    path: 'packages/rules/src/load-yaml.ts',
    text: `import { load } from 'js-yaml';
import { readFileSync } from 'node:fs';
const now = Date.now();`,
    problems: ['2: pure code imports node:fs', '3: domain code uses Date.now'],
  },
  'a use case does not see adapters': {
    path: 'services/ratelimit/src/decide/create-decider.ts',
    text: `import type { Redis } from '../backends/redis/redis-backend.ts';
import { memory } from '../backends/memory/memory-backend.ts';`,
    problems: ['2: only app.ts imports adapters, such as ../backends/memory/memory-backend.ts'],
  },
  'app.ts sees adapters': {
    path: 'services/ratelimit/src/app.ts',
    text: `import { memory } from './backends/memory/memory-backend.ts';`,
    problems: [],
  },
  'adapters of the same kind see each other': {
    path: 'services/ratelimit/src/backends/counter-backends.ts',
    text: `import { memory } from './memory/memory-backend.ts';`,
    problems: [],
  },
  'only main.ts and cli touch the process': {
    path: 'services/ratelimit/src/app.ts',
    text: `import { env } from 'node:process';
const all = { ...process.env };
const mine = worker.process;
const one = dev ? process : other;`,
    problems: [
      '1: only main.ts and cli/ touch the process',
      '2: only main.ts and cli/ touch the process',
      '4: only main.ts and cli/ touch the process',
    ],
  },
  'main.ts touches the process': {
    path: 'services/ratelimit/src/main.ts',
    text: `import { app } from './app.ts'; process.exit(await app(process.env));`,
    problems: [],
  },
};

for (const [name, { path, text, problems }] of Object.entries(cases)) {
  t.test(name, async (t) => {
    t.same(
      importProblems(path, text),
      problems.map((problem) => `${path}:${problem}`),
    );
  });
}
