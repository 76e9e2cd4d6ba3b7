import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/folders';
import t, { type Test } from 'tap';
import { testRules } from '../../src/cli/test-rules.ts';
import { runCommand } from '../support/run-command.ts';

const rules = `domain: shop
descriptors:
  - key: plan
    value: free
    descriptors:
      - key: user
        rate_limit: { unit: minute, requests_per_unit: 10 }
  - key: health
    rate_limit: { unlimited: true }
  - key: strict
    rate_limit: { unit: hour, requests_per_unit: 1, replaces: [{ name: wide }] }
  - key: wide
    rate_limit: { unit: day, requests_per_unit: 9, name: wide }
  - key: period
    rate_limit: { period: 300s, requests_per_unit: 9 }
  - key: calendar
    rate_limit: { unit: day, time_zone: Europe/Berlin, requests_per_unit: 9 }
`;

const passing = `cases:
  - name: the eleventh request of a free user is refused
    domain: shop
    descriptors: ['plan=free,user=alice']
    times: 11
    code: OVER_LIMIT
    limits:
      - { rule: shop.plan_free.user, requests_per_unit: 10, unit: minute, remaining: 0, code: OVER_LIMIT }
  - name: other results
    domain: shop
    descriptors: ['health=1', 'strict=1', 'wide=1', [{ key: path, value: 'a=b,c' }]]
    code: OK
    limits: [unlimited, { unit: hour, remaining: 0 }, replaced, none]
  - name: hits count
    domain: shop
    descriptors: ['wide=1']
    hits_addend: 4
    times: 2
    limits: [{ remaining: 1 }]
  - name: no hits
    domain: shop
    descriptors: ['wide=1']
    hits_addend: 0
    times: 2
    limits: [{ remaining: 9 }]
  - name: other windows
    domain: shop
    descriptors: ['period=1', 'calendar=1']
    limits: [{ period: 5m, remaining: 8 }, { unit: day, time_zone: Europe/Berlin, remaining: 8 }]
`;

function folderWith(t: Test, cases: string): { readonly folder: string; readonly file: string } {
  const { path, remove } = temporaryFolder();
  t.teardown(remove);
  const rulesFolder = temporaryFolder();
  t.teardown(rulesFolder.remove);
  writeFileSync(join(rulesFolder.path, 'shop.yaml'), rules);
  const file = join(path, 'cases.yaml');
  writeFileSync(file, cases);
  return { folder: rulesFolder.path, file };
}

t.test('cases that pass are listed, with exit code 0', async (t) => {
  const { folder, file } = folderWith(t, passing);
  const { exitCode, output, errors } = await runCommand('main.ts', ['test', folder, file]);
  t.strictSame(
    [exitCode, output, errors],
    [
      0,
      'ok      the eleventh request of a free user is refused\nok      other results\nok      hits count\nok      no hits\nok      other windows\n5 passed, 0 failed\n',
      '',
    ],
  );
});

t.test('a case that fails says where, and what differs', async (t) => {
  const { folder, file } = folderWith(
    t,
    `cases:
  - name: wrong
    domain: shop
    descriptors: ['plan=free,user=bob', 'plan=gold', 'health=1', 'period=1']
    code: OVER_LIMIT
    limits:
      - { rule: shop.plan_free, requests_per_unit: 11, remaining: 9 }
      - { unit: minute }
      - none
      - { unit: minute }
`,
  );
  const { exitCode, output = '' } = await testRules([folder, file]);
  t.equal(exitCode, 1);
  t.match(output.split('\n'), [
    `FAILED  wrong (${file}:2)`,
    '        code: expected OVER_LIMIT, got OK',
    '        descriptors[0].rule: expected shop.plan_free, got shop.plan_free.user',
    '        descriptors[0].requests_per_unit: expected 11, got 10',
    /^ {8}descriptors\[1\]: expected limited, got none: /,
    '        descriptors[2]: expected none, got unlimited',
    '        descriptors[3].unit: expected minute, got none',
    '0 passed, 1 failed',
  ]);
});

t.test('with -json the results have the decision', async (t) => {
  const { folder, file } = folderWith(t, passing);
  const { output = '' } = await testRules(['-json', folder, file]);
  t.match(JSON.parse(output), {
    passed: 5,
    failed: 0,
    cases: [
      { file, line: 2, ok: true, code: 'OVER_LIMIT', limits: [{ rule: 'shop.plan_free.user' }] },
      {
        limits: [
          { outcome: 'unlimited' },
          { outcome: 'limited' },
          { outcome: 'replaced' },
          { outcome: 'none' },
        ],
      },
      { limits: [{ remaining: 1 }] },
    ],
  });
});

t.test('a limit that one above it undercuts is a warning, with exit code 0', async (t) => {
  const { folder, file } = folderWith(
    t,
    "cases: [{ name: a, domain: d, descriptors: ['tenant=a,path=b'], code: OK }]",
  );
  writeFileSync(
    join(folder, 'undercut.yaml'),
    `domain: d
descriptors:
  - key: tenant
    rate_limit: { unit: hour, requests_per_unit: 10 }
    descriptors:
      - { key: path, rate_limit: { unit: minute, requests_per_unit: 20 } }
`,
  );
  const { exitCode, output = '' } = await testRules([folder, file]);
  t.equal(exitCode, 0);
  t.match(
    output,
    /^warning undercut\.yaml:6:16: limit 'd\.tenant\.path' \(20 per minute\) never refuses .+'d\.tenant' \(10 per hour\).+\nok /,
  );
  const json = await testRules(['-json', folder, file]);
  t.match(JSON.parse(json.output ?? ''), { warnings: [{ source: 'undercut.yaml', line: 6 }] });
});

const invalid: readonly [title: string, cases: string, problem: RegExp][] = [
  ['no cases', 'cases: []', /line 1: cases must be a list/],
  ['an unknown field', 'cases:\n  - name: a\n    domains: d', /line 3: unknown field domains/],
  [
    'no expectation',
    'cases:\n  - { name: a, domain: d, descriptors: ["a=b"] }',
    /line 2: a case must expect something/,
  ],
  [
    'a descriptor without =',
    'cases:\n  - { name: a, domain: d, code: OK, descriptors: [a] }',
    /line 2: 'a' is not an entry/,
  ],
  [
    'a number as value',
    'cases:\n  - { name: a, domain: d, code: OK, descriptors: [[{ key: a, value: 1 }]] }',
    /value must be text: put it in quotes/,
  ],
  [
    'an unknown code',
    'cases:\n  - { name: a, domain: d, code: DENIED, descriptors: ["a=b"] }',
    /code must be OK or OVER_LIMIT/,
  ],
  [
    'too many repetitions',
    'cases:\n  - { name: a, domain: d, code: OK, times: 100001, descriptors: ["a=b"] }',
    /times must be a whole number from 1 to 100000/,
  ],
  [
    'more limits than descriptors',
    'cases:\n  - { name: a, domain: d, limits: [none, none], descriptors: ["a=b"] }',
    /one element for each descriptor/,
  ],
  [
    'a text as limit',
    'cases:\n  - { name: a, domain: d, limits: [some], descriptors: ["a=b"] }',
    /be none, unlimited, replaced/,
  ],
];

for (const [title, cases, problem] of invalid) {
  t.test(`invalid cases: ${title}`, async (t) => {
    const { folder, file } = folderWith(t, cases);
    const { exitCode, errors = '' } = await testRules([folder, file]);
    t.equal(exitCode, 1);
    t.ok(errors.startsWith(`${file}: `), errors);
    t.match(errors, problem);
  });
}

t.test('invalid rules, missing files and wrong arguments are errors', async (t) => {
  const { folder, file } = folderWith(t, passing);
  t.match(await testRules([join(folder, 'missing'), file]), { exitCode: 1, errors: /ENOENT/ });
  t.match(await testRules([folder, `${file}.missing`]), { exitCode: 1, errors: /ENOENT/ });
  writeFileSync(join(folder, 'bad.yaml'), 'domain: [');
  t.match(await testRules([folder, file]), { exitCode: 1, errors: /bad\.yaml:1/ });
  t.match(await testRules([folder]), { exitCode: 2, errors: /a file of cases are needed/ });
  t.match(await testRules(['-jsn', folder, file]), { exitCode: 2, errors: /unknown flag -jsn/ });
  t.match(await testRules(['-help']), { exitCode: 0, output: /tollgate-ratelimit test <folder/ });
});
