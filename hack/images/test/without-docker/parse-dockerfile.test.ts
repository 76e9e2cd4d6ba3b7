import t from 'tap';
import { pairsOf, parseDockerfile } from '../../without-docker/parse-dockerfile.ts';

t.test('a Dockerfile has stages with instructions, and options apart from the rest', async (t) => {
  const { args, stages } = parseDockerfile(`# a comment
ARG BASE=debian
FROM --platform=$BUILDPLATFORM node:24 AS build
# another
COPY --from=files --chown=1:1 /a b
RUN --mount=type=cache,target=/c,sharing=locked one \\
    # within a command
    && two
FROM \${BASE}
CMD ["main.ts"]
`);
  t.match(args, [{ name: 'ARG', text: 'BASE=debian' }]);
  t.match(stages, [
    {
      name: 'build',
      base: 'node:24',
      instructions: [
        { name: 'COPY', options: { from: 'files', chown: '1:1' }, text: '/a b' },
        { name: 'RUN', options: { mount: 'type=cache,target=/c,sharing=locked' }, text: 'one && two' },
      ],
    },
    { name: '1', instructions: [{ name: 'CMD', text: '["main.ts"]' }] },
  ]);
});

t.test('only arguments come before the first stage', async (t) => {
  t.throws(() => parseDockerfile('RUN true\nFROM node'), /RUN before the first FROM/);
});

t.test('values of variables may be quoted or missing', async (t) => {
  t.strictSame(pairsOf('a=1 b="2 3" org.x.y=z'), [
    ['a', '1'],
    ['b', '2 3'],
    ['org.x.y', 'z'],
  ]);
  t.strictSame(pairsOf('TARGETPLATFORM'), [['TARGETPLATFORM', undefined]]);
});
