import type { JsonObject } from '@tollgate/kit/json';
import { decodeHTML } from 'entities';
import t from 'tap';
import { TemplateError } from '../../src/templates/syntax.ts';
import { parseTemplate } from '../../src/templates/template.ts';

function html(source: string, variables: JsonObject = {}): string {
  return parseTemplate(source, 'html').render(variables);
}

t.test('values in a link are unchanged and cannot add parameters', (t) => {
  const source =
    '<a href="https://app.test/confirm?token_hash={{ .TokenHash }}&email={{ .Email }}&next={{ .RedirectTo }}&n={{ .Data.name }}">';
  const variables = {
    TokenHash: 'pkce_0af',
    Email: 'ada+x@example.com',
    RedirectTo: 'https://app.test/cb?a=1&b=2#frag',
    Data: { name: 'Ada&token_hash=evil&next=https://evil.test/#"><b>' },
  };
  const [, href = ''] = /href="([^"]*)"/.exec(html(source, variables)) ?? [];
  const { searchParams, hash } = new URL(decodeHTML(href));
  t.same(Object.fromEntries(searchParams), {
    token_hash: variables.TokenHash,
    email: variables.Email,
    next: variables.RedirectTo,
    n: variables.Data.name,
  });
  t.equal(searchParams.size, 4);
  t.equal(hash, '');
  t.end();
});

t.test('missing values are empty, also in plain text', (t) => {
  t.equal(html('[{{ .None }}{{ .None.deeper }}{{ .constructor }}{{ .Data.toString }}]', { Data: {} }), '[]');
  t.equal(parseTemplate('[{{ .None }}{{ .Null }}]', 'text').render({ Null: null }), '[]');
  t.equal(parseTemplate('{{ .N }}', 'text').render({ N: '<&>+' }), '<&>+', 'plain text is not escaped');
  t.end();
});

t.test('break in the else of a loop ends the outer loop', (t) => {
  const source = '{{ range .L }}{{ range $.E }}{{ else }}{{ break }}{{ end }}x{{ end }}';
  t.equal(html(source, { L: [1, 2], E: [] }), '');
  t.throws(
    () => parseTemplate(`{{ range .L }}<p {{ range $.E }}{{ else }}{{ break }}{{ end }}>{{ end }}`, 'html'),
    TemplateError,
  );
  t.end();
});

t.test('errors name the line', (t) => {
  for (const [source, message] of [
    ['a\n{{ if .A }}\n', /^line 2: \{\{if\}\} has no \{\{end\}\}/],
    ['a\n\n{{ .A | nope }}', /^line 3: function "nope" not defined/],
    ['{{ .A }}\n<a href="x{{ if .B }}?{{ end }}\n{{ .C }}">', /^line 3: .*ambiguous context within a URL/],
    ['<p>\n<a href="x', /^ends in a non-text context/],
    ['<p>\n{{ if .A }}<b{{ end }}>', /^line 2: \{\{if\}\} branches end in different contexts/],
    ['<p\n\n title=a"b>', /^line 1: .* in unquoted attr/],
    ['{{', /^line 1: unclosed action/],
  ] as const)
    t.throws(() => parseTemplate(source, 'html'), { name: 'TemplateError', message }, source);
  t.throws(() => html('\n{{ .A.b }}', { A: 'x' }), {
    message: "line 2: can't evaluate field b in type string",
  });
  t.end();
});

t.test('templates that Go accepts but whose values could add URL parameters are rejected', (t) => {
  for (const source of [
    '<a href="/x{{ range .L }}{{ . }}?{{ end }}">',
    '<a href="/{{ range .L }}{{ . }}"><a href="{{ end }}">',
    '{{ define "a" }}{{ if .N }}{{ template "a" .N }}<p title="{{ end }}{{ end }}{{ template "a" . }}',
  ])
    t.throws(() => parseTemplate(source, 'html'), TemplateError, source);
  // Accepted: all values are filtered like the start of the URL.
  const links = parseTemplate('<a href="{{ range .L }}{{ . }}/{{ end }}">', 'html');
  t.equal(links.render({ L: ['a', 'javascript:x'] }), '<a href="a/#ZgotmplZ/">');
  t.end();
});

t.test('crafted templates are parsed in linear time', (t) => {
  // CPU time, as other processes may be running.
  const before = process.cpuUsage();
  for (const source of [
    '{{'.repeat(500_000),
    `{{${' '.repeat(1_000_000)}`,
    '{{ "'.repeat(250_000),
    '{{ .A }}'.repeat(100_000),
    '{{ .A }}'.repeat(19_000),
    `{{ ${'('.repeat(100_000)} }}`,
    `{{ .A${' | print'.repeat(100_000)} }}`,
    '{{ if .A }}'.repeat(10_000),
    '<a '.repeat(300_000),
    '<!--'.repeat(250_000),
    `<style>${'"" '.repeat(300_000)}`,
    `<script>${'+'.repeat(500_000)}x${' '.repeat(400_000)}y`,
    `<script>${'`${'.repeat(5_000)}`,
    `<style>${'url('.repeat(250_000)}`,
    `<p style="${'&quot;'.repeat(150_000)}`,
    `{{ "${'a'.repeat(1_000_000)}`,
    `{{ \`${'a'.repeat(1_000_000)}`,
    `<script>${'{{ range .A }}a/'.repeat(40)}${'b{{ end }}'.repeat(40)}`,
    `{{ define "a" }}${'{{ template "a" }}'.repeat(1_000)}{{ end }}{{ template "a" }}`,
    'x'.repeat(2_000_000),
  ])
    try {
      parseTemplate(source, 'html');
    } catch (error) {
      t.type(error, TemplateError, source.slice(0, 20));
    }
  const { user, system } = process.cpuUsage(before);
  t.ok(user + system < 8_000_000, `${user + system} µs`);
  t.end();
});

t.test('output and work of a template are bounded', (t) => {
  const long = { Data: { x: 'y'.repeat(100_000), l: Array.from({ length: 200 }, (_, i) => i) } };
  for (const [source, message] of [
    ['{{ .Data.x }}'.repeat(100), /longer than/],
    ['{{ range .Data.l }}{{ range $.Data.l }}{{ end }}{{ end }}', /more than 10000 iterations/],
    ['{{ range 1000000000 }}{{ end }}', /more than 10000 iterations/],
    ['{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}', /call each other/],
    [
      `{{ define "a" }}${'{{ if 1 }}'.repeat(98)}{{ template "a" }}${'{{ end }}'.repeat(98)}{{ end }}{{ template "a" }}`,
      /call each other|nested too deep/,
    ],
    ['{{ printf "%999999999d" 1 }}', /more than 1000/],
    [`{{ $x := .Data.x }}${'{{ $x = print $x $x }}'.repeat(30)}`, /makes more than/],
  ] as const)
    t.throws(() => html(source, long), { name: 'TemplateError', message }, source.slice(0, 60));
  t.equal(html('{{ .Data.x }}', long).length, 100_000);
  t.end();
});

/** Pseudo-random text of special characters, deterministic by seed. */
function hostileText(seed: number): string {
  const pieces =
    `< > " ' & + = \` / \\ : ; { } ( ) % # ? @ [ ] $ - , . ! ~ <b> </script> <!-- --> */ /* // \${ javascript: expression( url( %41 %zz &quot; &#39; \u2028 \u2029 \u{1f600} é a 1 onclick= \t \n \r \f`.split(
      ' ',
    );
  let state = seed;
  const next = (bound: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state >>> 8) % bound;
  };
  return Array.from({ length: 1 + next(8) }, () => pieces[next(pieces.length)] ?? ' ').join('');
}

/** Tags with their attribute names. */
function structure(document: string): string[] {
  return [...document.matchAll(/<[^>]*>/g)].map(([tag]) =>
    tag.replaceAll(/"[^"]*"|'[^']*'|=[^ \t\n\f\r"'>]+/g, '""'),
  );
}

t.test('values in scripts, styles and event handlers are rejected with their line', (t) => {
  for (const source of [
    '<script>f({{ .v }})</script>',
    '<script type="text/x">{{ .v }}</script>',
    '<style>p { color: {{ .v }} }</style>',
    '<p style="color: {{ .v }}">',
    "<p style = '{{ .v }}'>",
    '<p onclick={{ .v }}>',
    '<p data-onclick="f({{ .v }})">',
    '<meta http-equiv="refresh" content="0; url={{ .v }}">',
    '{{ define "a" }}{{ .v }}{{ end }}<style>{{ template "a" . }}</style>',
  ])
    t.throws(() => parseTemplate(`\n${source}`, 'html'), { message: /^line 2: a value in a script/ }, source);
  const source =
    '<style>p{{ if .v }} a { content: "</p>" } /* <b> */{{ end }}</style><p style="{{ if .v }}color: red{{ end }}" onclick="f(1)">{{ .v }}</p>';
  t.equal(
    html(source, { v: '<' }),
    '<style>p a { content: "</p>" } /* <b> */</style><p style="color: red" onclick="f(1)">&lt;</p>',
    'literal ones are copied',
  );
  t.end();
});

t.test('no value escapes from its context', (t) => {
  const page = parseTemplate(
    '<!-- {{ .v }} --><p title="{{ .v }}" class=\'{{ .v }}\' lang={{ .v }}>{{ .v }}</p><a href="{{ .v }}" style="color: red">{{ .v }}</a><title>{{ .v }}</title><style>p { width: 1em }</style><img srcset="{{ .v }}">',
    'html',
  );
  const link = parseTemplate('<a href="https://a.test/{{ .p }}?x={{ .v }}&y={{ .v }}">', 'html');
  const expected = structure(page.render({ v: 'x' }));
  for (let seed = 1; seed <= 500; seed++) {
    const v = hostileText(seed);
    const [, href = ''] = /href="([^"]*)"/.exec(link.render({ v, p: 'p' })) ?? [];
    const found = {
      structure: structure(page.render({ v })),
      parameters: [...new URL(decodeHTML(href)).searchParams],
    };
    const wanted = {
      structure: expected,
      parameters: [
        ['x', v],
        ['y', v],
      ],
    };
    // The text has characters with a meaning in TAP, so it is not part of the assertion name.
    t.same(found, wanted, `seed ${seed}`);
  }
  t.end();
});

t.test('no URL value runs code', (t) => {
  for (const link of [
    'javascript:alert(1)',
    ' JAVA\tSCRIPT:x',
    'data:text/html,x',
    'vbscript:x',
    '\u0001javascript:x',
  ])
    t.equal(html('<a href="{{ .Data.link }}">', { Data: { link } }), '<a href="#ZgotmplZ">');
  t.equal(html('<a href = {{ .U }}>', { U: 'https://a.b/?c&d' }), '<a href = https://a.b/?c&amp;d>');
  t.end();
});
