import t from 'tap';
import { releaseNotes } from '../release-notes.ts';

const changelog = `# Changelog

## Unreleased

### Added

- new

## 1.2.0 (2026-11-21)

### Fixed

- old
`;

t.test('the notes of a release are its section of the changelog', async (t) => {
  t.equal(releaseNotes(changelog, 'Unreleased'), '### Added\n\n- new');
  t.equal(releaseNotes(changelog, '1.2.0'), '### Fixed\n\n- old');
});

t.test('a version that the changelog does not know is not released', async (t) => {
  t.throws(() => releaseNotes(changelog, '1.2'), /CHANGELOG\.md has no section "## 1\.2"/);
});
