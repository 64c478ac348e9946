# SPDX-License-Identifier: BSD-2-Clause

# cmake -DBUILD=FOLDER -DCC=COMPILER -DPREFIX=PREFIX -P sbom.cmake: writes the bill of materials of what
# "cmake --install" installs. The manifest of an installation, which the target uninstall reads, stays as it is.
set(tree ${BUILD}/sbom-tree)
set(manifest ${BUILD}/install_manifest.txt)
file(REMOVE_RECURSE ${tree})
if(EXISTS ${manifest})
  file(RENAME ${manifest} ${manifest}.kept)
endif()
set(ENV{DESTDIR} ${tree})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX} RESULT_VARIABLE failed
                OUTPUT_QUIET)
unset(ENV{DESTDIR})
file(REMOVE ${manifest})
if(EXISTS ${manifest}.kept)
  file(RENAME ${manifest}.kept ${manifest})
endif()
if(NOT failed)
  set(ENV{CC} ${CC})
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/sbom ${tree} RESULT_VARIABLE failed
                  OUTPUT_FILE ${BUILD}/infiniband-mad.spdx.json)
endif()
file(REMOVE_RECURSE ${tree})
if(failed)
  file(REMOVE ${BUILD}/infiniband-mad.spdx.json)
  message(FATAL_ERROR "no bill of materials: ${failed}")
endif()
message(STATUS "${BUILD}/infiniband-mad.spdx.json")
