/**
 * What the CHANGELOG says of a version, or of what is not released yet.
 *
 * @throws Error when it has no such section.
 */
export function releaseNotes(changelog: string, heading: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.split('\n', 1)[0]?.split(' ')[0] === heading);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section "## ${heading}"`);
  return section.slice(section.indexOf('\n') + 1).trim();
}
