import { focusWhole } from '@countersign/client/ui'
import { ageOf, type Listing, shownFiles, sizeOf } from '@countersign/example-page/listing'
import { SafeText } from '@countersign/registry/react/safe-text'
import { useState } from 'react'

/** The files that `list_files` returned. */
export function FileListing({ listing }: { listing: Listing }) {
  const [isWhole, setIsWhole] = useState(false)
  const { shown, hidden } = shownFiles(listing, isWhole)
  return (
    <div className="tool-output" tabIndex={-1}>
      <p className="tool-label">Result</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
      <div className="listing" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">File</th>
              <th scope="col">Size</th>
              <th scope="col">Changed</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ path, bytes, daysOld }) => (
              <tr key={path}>
                <th scope="row">
                  <SafeText text={path} />
                </th>
                <td>{sizeOf(bytes)}</td>
                <td>{ageOf(daysOld)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {hidden > 0 && (
        <button
          type="button"
          className="button link"
          onClick={({ currentTarget }) => {
            focusWhole(currentTarget)
            setIsWhole(true)
          }}
        >
          Show {hidden.toLocaleString('en')} more files
        </button>
      )}
    </div>
  )
}
